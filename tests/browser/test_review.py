"""The inbox as a person with a keyboard uses it."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import Console

WAITING = """
from tests.factories import make_memory, make_waiting
from instances.models import Instance
bot = Instance.objects.get(slug="{slug}")
known = make_memory(bot, "The demo is on Monday")
make_waiting(bot, "The demo is on Tuesday", known)
for n in range({n}):
    make_waiting(bot, f"Doubtful fact {{n}}", owner="{owner}")
"""


def waiting(console: Console, slug: str, n: int, owner: str = "") -> str:
    """An inbox with a possible conflict at the end, and `n` others before it."""
    console.instance(slug)
    console.manage("shell", "-c", WAITING.format(slug=slug, n=n, owner=owner))
    return f"/memory/review?instance={slug}"


def contents(console: Console, slug: str) -> list[str]:
    return [each["content"] for each in console.api("GET", f"/memories?instanceId={slug}")["memories"]]


def test_the_keyboard_is_enough(console: Console, page: Page) -> None:
    page.goto(waiting(console, "keyboard-bot", 3))
    rows = page.locator("[data-row]")
    expect(rows).to_have_count(4)
    page.keyboard.press("?")
    expect(page.get_by_text("edit and approve")).to_be_visible()
    page.keyboard.press("?")
    for key in "jjk":
        page.keyboard.press(key)
    expect(rows.nth(0)).to_be_focused()

    page.keyboard.press("a")
    expect(rows).to_have_count(3)
    expect(page.locator("#messages")).to_contain_text("Approved: “Doubtful fact 2”")
    expect(page.locator("#review-count")).to_have_text("3")
    expect(rows.nth(0)).to_be_focused()

    page.keyboard.press("e")
    box = page.get_by_label("Content")
    expect(box).to_have_value("Doubtful fact 1")
    box.fill("")
    page.get_by_role("button", name="Approve", exact=True).last.click()
    expect(page.get_by_text("This may not be empty.")).to_be_visible()
    expect(box).to_be_focused()
    box.fill("A certain fact")
    page.locator("dialog").get_by_role("button", name="Approve").click()
    expect(page.locator("dialog")).to_be_hidden()
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_be_focused()

    reject = page.locator("dialog").get_by_role("button", name="Reject")
    page.keyboard.press("x")
    # The text is there before the dialog is open, and Escape would then close nothing.
    expect(reject).to_be_focused()
    expect(page.locator("dialog")).to_contain_text("Doubtful fact 0")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_be_hidden()
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_be_focused()
    page.keyboard.press("x")
    expect(reject).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("dialog")).to_be_hidden()
    expect(rows).to_have_count(1)
    expect(page.locator("#messages")).to_contain_text("Rejected.")
    expect(rows.nth(0)).to_be_focused()

    page.keyboard.press("m")
    page.get_by_label("What it will say").fill("The demo moved from Monday to Tuesday")
    page.locator("dialog").get_by_role("button", name="Merge").click()
    expect(page.get_by_role("heading", name="Nothing waits for review")).to_be_focused()
    expect(page.locator("#review-count")).to_have_text("0")
    assert contents(console, "keyboard-bot") == [
        "Doubtful fact 2", "A certain fact", "The demo moved from Monday to Tuesday",
    ]  # fmt: skip


def test_the_next_page_follows_when_this_one_is_done(console: Console, page: Page) -> None:
    page.goto(waiting(console, "long-inbox-bot", 20))
    expect(page.locator("[data-row]")).to_have_count(20)
    page.get_by_label("Select this page").check()
    expect(page.get_by_text("20 selected")).to_be_visible()
    page.get_by_role("button", name="Approve selected").click()
    expect(page.get_by_text("Approved 20 memories.")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.locator("#messages")).to_contain_text("Both are kept")
    expect(page.get_by_role("heading", name="Nothing waits for review")).to_be_focused()


def test_it_works_without_scripts(console: Console, page: Page) -> None:
    address = waiting(console, "scriptless-bot", 1)
    browser = page.context.browser
    assert browser
    context = browser.new_context(
        base_url=console.url, storage_state=page.context.storage_state(), java_script_enabled=False
    )
    plain = context.new_page()
    plain.goto(address)
    plain.get_by_role("button", name="Approve", exact=True).click()
    expect(plain.get_by_text("Approved: “Doubtful fact 0”")).to_be_visible()
    plain.get_by_role("link", name="Merge…").click()
    plain.get_by_label("What it will say").fill("The demo moved")
    plain.get_by_role("button", name="Merge").click()
    expect(plain.get_by_text("Merged into “The demo moved”.")).to_be_visible()
    context.close()


def test_enter_on_a_box_decides_nothing(console: Console, page: Page) -> None:
    page.goto(waiting(console, "enter-inbox-bot", 1))
    page.locator("input[name=ids]").nth(0).focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 selected")).to_be_visible()
    expect(page.locator("[data-row]")).to_have_count(2)
    assert contents(console, "enter-inbox-bot") == ["The demo is on Monday"]


def test_a_question_about_what_somebody_else_has_decided_takes_the_row_away(console: Console, page: Page) -> None:
    page.goto(waiting(console, "faster-bot", 2))
    rows = page.locator("[data-row]")
    expect(rows).to_have_count(3)
    for key, left in (("e", 2), ("x", 1)):
        first = (rows.first.get_attribute("id") or "").removeprefix("waiting-")
        console.api("POST", f"/memories/{first}/review", {"instanceId": "faster-bot", "action": "approve"})
        page.keyboard.press("k")
        page.keyboard.press(key)
        expect(rows).to_have_count(left)
        expect(page.locator("#messages")).to_contain_text("Somebody has reviewed this memory already.")
        expect(page.locator("dialog")).to_be_hidden()
        expect(rows.first).to_be_focused()
