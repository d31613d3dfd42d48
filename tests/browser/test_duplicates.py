"""Finding and merging duplicates, with a real worker."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import Console

ALIKE = """
from tests.factories import make_memory, make_pair
from instances.models import Instance
bot = Instance.objects.get(slug="{slug}")
make_pair(make_memory(bot, "Ann likes tea"), make_memory(bot, "Ann likes green tea"))
make_pair(make_memory(bot, "Room 12 is free"), make_memory(bot, "Room 14 is free"), "conflict")
"""
TEXTS = (
    "Refunds above 200 EUR need the approval of a manager",
    "Refunds above 200 EUR always need the approval of a manager",
    "Refunds above 500 EUR need the approval of a manager",
    "Anna keeps two cats and a parrot",
)


def alike(console: Console, slug: str) -> str:
    """A workbench with a duplicate and a possible conflict."""
    console.instance(slug)
    console.manage("shell", "-c", ALIKE.format(slug=slug))
    return f"/memory/duplicates?instance={slug}"


def test_find_merge_and_keep(console: Console, page: Page) -> None:
    console.api("POST", "/instances", {"slug": "twin-bot", "embedder": "offline"})
    memories = [{"content": text} for text in TEXTS]
    console.api("POST", "/memories/bulk", {"instanceId": "twin-bot", "memories": memories})
    console.manage("embedmemories", "--instance", "twin-bot")
    page.goto("/memory?instance=twin-bot")
    page.get_by_role("link", name="Duplicates").click()
    page.get_by_label("Similarity from").fill("0.7")
    page.get_by_role("button", name="Find duplicates").click()
    rows = page.locator("[data-row]")
    expect(rows.first).to_be_visible(timeout=30_000)
    page.goto("/memory/duplicates?instance=twin-bot")
    expect(rows).to_have_count(2)

    page.keyboard.press("j")
    expect(rows.nth(0)).to_be_focused()
    page.keyboard.press("m")
    page.get_by_label("What it will say").fill("Managers approve refunds")
    page.locator("dialog").get_by_role("button", name="Merge").click()
    expect(rows).to_have_count(1)
    expect(page.locator("#messages")).to_contain_text("Merged into “Managers approve refunds”")
    expect(rows.nth(0)).to_be_focused()
    page.keyboard.press("a")
    expect(page.get_by_role("heading", name="No two memories say nearly the same")).to_be_focused()
    expect(page.locator("#pair-count")).to_have_text("0 pairs")
    assert console.api("GET", "/memories?instanceId=twin-bot")["total"] == 3
