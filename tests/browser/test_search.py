"""Searching the Memory screen as a person does."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.browser.conftest import Console
from tests.browser.test_accessibility import problems

MEMORIES: tuple[dict[str, Any], ...] = (
    {"content": "Acme renews its contract every May.", "category": "fact"},
    {"content": "Initech signed a contract for two years.", "category": "decision"},
    {"content": "Carol likes green tea in the morning.", "category": "preference"},
)


def offline_instance(console: Console, slug: str, *memories: dict[str, Any]) -> str:
    """An instance with vectors, which the worker makes."""
    console.api("POST", "/instances", {"slug": slug, "name": slug, "embedder": "offline"})
    console.api("POST", "/memories/bulk", {"instanceId": slug, "memories": memories})
    return slug


def hits(page: Page) -> list[str]:
    return page.locator("td.c-content a.memory-text").all_inner_texts()


def searches(page: Page) -> list[str]:
    """The addresses of the searches the page asks for from now on."""
    asked: list[str] = []

    def note(request: Request) -> None:
        if "search=" in request.url and request.headers.get("hx-request"):
            asked.append(request.url)

    page.on("request", note)
    return asked


def test_search_as_you_type(console: Console, page: Page) -> None:
    slug = console.instance("typing-bot", *MEMORIES)
    page.goto(f"/memory?instance={slug}")
    asked = searches(page)
    page.keyboard.press("/")
    box = page.get_by_role("searchbox", name="Search")
    expect(box).to_be_focused()
    expect(box).to_have_value("")
    box.press_sequentially("contract", delay=30)
    expect(page.get_by_text("2 results", exact=True)).to_be_visible()
    assert len(asked) <= 2, "typing is waited for"
    expect(box).to_be_focused()
    expect(page).to_have_url(re.compile("search=contract"))
    expect(page.locator("mark")).to_have_text(["contract", "contract"])
    expect(page.get_by_text("Keyword only")).to_be_visible()
    box.press_sequentially(" acme", delay=30)
    expect(page.locator("mark").first).to_have_text("Acme")
    expect(page).to_have_url(re.compile("search=contract\\+acme|search=contract%20acme"))
    page.go_back()
    expect(page.get_by_role("searchbox")).to_have_value("")
    expect(page.locator(".count").get_by_text("3 memories")).to_be_visible()
    page.go_forward()
    expect(page.get_by_role("searchbox")).to_have_value("contract acme")
    expect(page.get_by_text("2 results", exact=True)).to_be_visible()
    page.reload()
    expect(page.get_by_text("2 results", exact=True)).to_be_visible()
    page.get_by_role("link", name="Clear", exact=True).click()
    expect(page.locator(".count").get_by_text("3 memories")).to_be_visible()
    expect(page.get_by_role("searchbox")).to_be_focused()
    assert "search" not in page.url


def test_a_newer_search_cancels_the_one_before(console: Console, page: Page) -> None:
    slug = console.instance("cancel-bot", *MEMORIES)
    page.goto(f"/memory?instance={slug}")
    cancelled: list[str] = []
    page.on("requestfailed", lambda request: cancelled.append(request.url))
    page.route(re.compile("search=tea"), lambda route: None)  # never answers
    box = page.get_by_role("searchbox")
    with page.expect_request(re.compile("search=tea")):
        box.fill("tea")
    box.fill("contract")
    expect(page.get_by_text("2 results", exact=True)).to_be_visible()
    assert [url for url in cancelled if "search=tea" in url]


@pytest.mark.parametrize("moment", ["typed", "sent"])
def test_a_category_chosen_before_a_search_is_answered_goes_with_it(console: Console, page: Page, moment: str) -> None:
    slug = console.instance(f"hasty-{moment}-bot", *MEMORIES)
    page.goto(f"/memory?instance={slug}")
    asked: list[str] = []

    def answer_all_but_the_first(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) > 1:
            route.continue_()

    page.route("**/memory?*", answer_all_but_the_first)
    box = page.get_by_role("searchbox")
    if moment == "typed":
        box.fill("contract")
    else:
        with page.expect_request("**/memory?*"):
            box.fill("contract")
    page.get_by_role("link", name=re.compile("^Decision")).click()
    expect(page.get_by_text("1 result", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile("search=contract.*category=decision|category=decision.*search=contract"))
    expect(box).to_have_value("contract")


def test_taking_a_filter_away_keeps_what_is_being_typed(console: Console, page: Page) -> None:
    slug = console.instance("token-bot", *MEMORIES)
    page.goto(f"/memory?instance={slug}&minImportance=3&category=decision")
    page.get_by_role("searchbox").fill("contract")
    page.get_by_role("link", name="Importance from: 3").click()
    expect(page.get_by_text("1 result", exact=True)).to_be_visible()
    expect(page.get_by_role("searchbox")).to_have_value("contract")
    expect(page.get_by_role("link", name="Importance from")).to_have_count(0)


def test_filters_and_enter_keep_the_search(console: Console, page: Page) -> None:
    slug = console.instance("filter-search-bot", *MEMORIES)
    page.goto(f"/memory?instance={slug}")
    page.get_by_role("searchbox").fill("contract")
    page.get_by_role("searchbox").press("Enter")
    expect(page.get_by_text("2 results", exact=True)).to_be_visible()
    page.get_by_role("link", name="Decision", exact=True).click()
    expect(page.get_by_text("1 result", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile("search=contract.*category=decision|category=decision.*search=contract"))
    page.get_by_role("searchbox").fill("tea")
    expect(page.get_by_role("heading", name="Nothing found for “tea”")).to_be_visible()
    page.get_by_role("link", name="Search without filters").click()
    expect(page.get_by_text("1 result", exact=True)).to_be_visible()
    page.get_by_text("Filters", exact=True).click()
    expect(page.get_by_label("Sort by")).to_be_hidden()
    page.get_by_label("Importance from").select_option("9")
    expect(page.get_by_role("heading", name="Nothing found for “tea”")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("1 result", exact=True)).to_be_visible()


def test_why_a_memory_is_there_and_what_is_like_it(console: Console, page: Page) -> None:
    slug = offline_instance(console, "explain-bot", *MEMORIES)
    page.goto(f"/memory?instance={slug}")
    expect(page.locator("#embedding")).to_be_hidden(timeout=20_000)
    page.get_by_role("searchbox").fill("acme contract")
    expect(page.get_by_text("Hybrid search")).to_be_visible()
    asked = searches(page)
    page.locator("details.explain > summary").first.click()
    table = page.locator("details.explain[open] table")
    cells = [cell.split()[0] for cell in table.locator("td:last-child").all_inner_texts()]
    *parts, total = map(float, cells)
    assert len(parts) == 3
    assert round(sum(parts), 5) == total
    expect(table.get_by_text("cosine")).to_be_visible()
    assert problems(page) == []
    assert asked == []
    page.get_by_role("button", name="Pin", exact=True).first.click()
    expect(page.locator("tr button[aria-pressed=true]")).to_have_count(1)
    expect(page.locator("details.explain[open]")).to_have_count(1)
    page.locator("a.memory-text").first.click()
    similar = page.get_by_role("region", name="Similar memories")
    expect(similar.get_by_role("link")).to_have_count(1)
    similar.get_by_role("link").first.click()
    expect(page.get_by_role("region", name="Content")).to_contain_text("Initech signed")
    page.get_by_role("link", name="Memory", exact=True).last.click()
    expect(page.get_by_role("searchbox")).to_have_value("acme contract")


def test_embedding_with_live_progress(console: Console, page: Page) -> None:
    slug = console.instance("late-bot", *MEMORIES)
    page.goto(f"/memory?instance={slug}")
    expect(page.get_by_role("button", name="Embed now")).to_have_count(0)
    console.manage("shell", "-c", LATER.format(slug=slug))
    page.goto(f"/memory?instance={slug}")
    expect(page.get_by_text("3 memories have no vector yet")).to_be_visible()
    page.get_by_role("button", name="Embed now").click(delay=6_000)  # longer than the line stays as it is
    expect(page.get_by_text(re.compile("pieces of text have a vector now"))).to_be_visible(timeout=20_000)
    page.get_by_role("searchbox").fill("contract")
    expect(page.get_by_text("Hybrid search")).to_be_visible()
    page.reload()
    expect(page.locator("#embedding")).to_be_hidden()


# As if a key had just been added while nothing has asked for vectors yet.
LATER = "from instances.models import Instance; Instance.objects.filter(slug='{slug}').update(embedder='offline')"


def test_a_search_without_scripts(console: Console, page: Page) -> None:
    slug = console.instance("plain-search-bot", *MEMORIES)
    context = page.context.browser.new_context(
        base_url=console.url, java_script_enabled=False, storage_state=page.context.storage_state()
    )
    plain = context.new_page()
    plain.goto(f"/memory?instance={slug}")
    plain.get_by_role("searchbox").fill("contract")
    plain.get_by_role("button", name="Search", exact=True).click()
    expect(plain.get_by_text("2 results", exact=True)).to_be_visible()
    assert len(hits(plain)) == 2
    plain.locator("details.explain > summary").first.click()
    expect(plain.get_by_text("30/(60+1)")).to_be_visible()
    plain.get_by_role("link", name="Clear", exact=True).click()
    expect(plain.locator(".count").get_by_text("3 memories")).to_be_visible()
    context.close()


def test_filters_in_force_leave_the_results_in_sight(console: Console, page: Page) -> None:
    slug = console.instance("phone-bot", *MEMORIES)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/memory?instance={slug}&search=contract&minImportance=2")
    expect(page.get_by_text("Importance from: 2")).to_be_in_viewport()
    expect(page.get_by_text("2 results", exact=True)).to_be_in_viewport()
    page.set_viewport_size({"width": 1280, "height": 900})
    box, button = page.get_by_role("searchbox").bounding_box(), page.locator(".more-filters > summary").bounding_box()
    assert box
    assert button
    assert button["x"] > box["x"] + box["width"]
    assert abs(button["y"] + button["height"] / 2 - box["y"] - box["height"] / 2) < 2
    page.locator(".more-filters > summary").click()
    expect(page.get_by_label("Role", exact=True)).to_be_visible()
    assert page.locator(".more-filters > summary").bounding_box() == button


def test_half_a_date_does_not_hold_up_the_search(console: Console, page: Page) -> None:
    slug = console.instance("half-date-bot", *MEMORIES)
    page.goto(f"/memory?instance={slug}")
    page.locator(".more-filters > summary").click()
    page.get_by_label("Created from").press("3")
    page.get_by_role("searchbox").fill("contract")
    expect(page.get_by_text("2 results", exact=True)).to_be_visible()


def test_the_settings_say_that_vectors_are_missing(console: Console, page: Page) -> None:
    slug = console.instance("unembedded-bot", *MEMORIES)
    console.manage("shell", "-c", LATER.format(slug=slug))
    page.goto(f"/instances/{slug}/settings")
    expect(page.get_by_text("3 memories have no vector yet")).to_be_visible()
    page.get_by_role("button", name="Embed now").click()
    expect(page.get_by_text(re.compile("pieces of text have a vector now"))).to_be_visible(timeout=20_000)
