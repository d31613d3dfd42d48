"""Trying recall as a person does."""

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import Console
from tests.browser.test_accessibility import problems

MEMORIES: tuple[dict[str, Any], ...] = (
    {"content": "Refunds take five working days.", "role": "reference", "key": "refund-days"},
    {"content": "Refunds above fifty euros need a signature.", "role": "reference", "key": "refund-limit"},
    {"content": "Parking is free on Sundays.", "role": "reference", "key": "parking", "owner": "bob"},
)


def open_playground(console: Console, page: Page, slug: str) -> None:
    console.instance(slug, *MEMORIES)
    page.goto(f"/recall?instance={slug}")


def test_typing_changes_the_block(console: Console, page: Page) -> None:
    open_playground(console, page, "playground-bot")
    expect(page.get_by_text("What would Playground bot be told?")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "query=" in request.url else None)
    message = page.get_by_label("Message")
    message.press_sequentially("refunds", delay=20)
    block = page.locator("#block")
    expect(block).to_contain_text("[refund-days]: Refunds take five working days.")
    expect(block).not_to_contain_text("Parking")
    assert len(asked) <= 2, "typing is waited for"
    expect(message).to_be_focused()
    expect(page).to_have_url(re.compile(r"query=refunds$"))
    message.fill("Where can I find parking?")
    expect(block).to_contain_text("[parking]: Parking is free on Sundays.")
    page.reload()
    expect(message).to_have_value("Where can I find parking?")
    expect(block).to_contain_text("[parking]")


def test_a_slider_cuts_a_memory_and_says_why(console: Console, page: Page) -> None:
    open_playground(console, page, "slider-bot")
    page.get_by_label("Message").fill("refunds")
    block = page.locator("#block")
    expect(block).to_contain_text("[refund-limit]")
    slider = page.get_by_label("Memories found, slider")
    slider.focus()
    slider.press("Home")
    expect(page.get_by_label("Memories found", exact=True)).to_have_value("1")
    left_out = page.get_by_role("region", name="Left out")
    expect(left_out.get_by_text("Others are better")).to_be_visible()
    expect(left_out).to_contain_text("1 are chosen")
    expect(page.get_by_text("memories found 1 instead of 8")).to_be_visible()
    expect(page).to_have_url(re.compile(r"limit=1"))
    assert problems(page) == []
    page.get_by_label("Memories found", exact=True).fill("8")
    expect(left_out.get_by_text("Others are better")).to_have_count(0)
    expect(slider).to_have_value("8")
    expect(page).not_to_have_url(re.compile(r"limit="))


def test_a_setting_that_cannot_be_is_said(console: Console, page: Page) -> None:
    open_playground(console, page, "wrong-bot")
    page.get_by_label("Message").fill("refunds")
    expect(page.locator("#block")).to_contain_text("[refund-limit]")
    page.get_by_label("Token budget", exact=True).fill("50")
    expect(page.get_by_role("alert").get_by_text("Token budget: Must be at least 100.")).to_be_visible()
    page.get_by_label("Token budget", exact=True).fill("500")
    expect(page.locator("#block")).to_contain_text("[refund-limit]")


def test_why_not_follows_the_sliders(console: Console, page: Page) -> None:
    open_playground(console, page, "why-bot")
    page.get_by_label("Message").fill("refunds")
    expect(page.locator("#block")).to_contain_text("[refund-limit]")
    page.get_by_label("Memory", exact=True).press_sequentially("signature", delay=20)
    page.locator("#suggestions").get_by_role("link", name="Refunds above fifty euros").click()
    why = page.locator("#why")
    expect(why.get_by_text("It is in the block")).to_be_visible()
    page.get_by_label("Token budget", exact=True).fill("100")
    expect(why.get_by_text("It is in the block")).to_be_visible()
    page.get_by_label("Memories found", exact=True).fill("1")
    expect(why.get_by_text("It is not in the block.")).to_be_visible()
    expect(why.get_by_text("Others are better")).to_be_visible()


def test_marks_become_golden_queries_that_can_be_run(console: Console, page: Page) -> None:
    open_playground(console, page, "golden-bot")
    page.get_by_label("Message").fill("refunds")
    given = page.get_by_role("region", name="In it").get_by_role("listitem").filter(has_text="signature")
    given.get_by_role("button", name="Expected for this question", exact=True).click()
    expect(given.get_by_role("button", name="Expected for this question", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    page.get_by_role("link", name="Golden queries").click()
    expect(page.get_by_role("link", name="refunds", exact=True)).to_be_visible()
    page.get_by_label("Memories found", exact=True).fill("1")
    page.get_by_role("button", name="Run").click()
    result = page.get_by_role("status").filter(has_text="Recall@k")
    expect(result).to_be_visible()
    expect(page.get_by_text("missed: Refunds above fifty euros")).not_to_have_count(0)
    title, figure = result.locator("thead th").nth(1).bounding_box(), result.locator("td").first.bounding_box()
    assert title
    assert figure
    assert (title["x"], title["width"]) == (figure["x"], figure["width"])
    assert result.locator(".table-wrap").evaluate("part => part.scrollWidth - part.clientWidth") == 0
    assert problems(page) == []
    page.get_by_role("button", name="Save this setting").click()
    expect(page.get_by_text("The settings are saved.")).to_be_visible()
    expect(page.get_by_label("Memories found", exact=True)).to_have_value("1")
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Neither").check()
    assert problems(page) == []
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Nothing is marked yet")).to_be_visible()


def test_the_end_user_is_completed(console: Console, page: Page) -> None:
    open_playground(console, page, "user-bot")
    page.get_by_label("End user").press_sequentially("bo", delay=20)
    expect(page.locator("#owners option")).to_have_count(1)
    expect(page.locator("#owners option")).to_have_attribute("value", "bob")


def test_the_block_is_copied(console: Console, page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_playground(console, page, "copy-bot")
    page.get_by_label("Message").fill("parking")
    expect(page.locator("#block")).to_contain_text("[parking]")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#block").inner_text()


def test_it_is_copied_where_a_browser_lends_no_clipboard(console: Console, page: Page) -> None:
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    open_playground(console, page, "insecure-bot")
    page.get_by_label("Message").fill("parking")
    expect(page.locator("#block")).to_contain_text("[parking]")
    block = page.locator("#block").inner_text()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    page.get_by_label("Message").focus()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.press("ControlOrMeta+V")
    expect(page.get_by_label("Message")).to_have_value(block)

    page.goto("/keys/new")
    page.get_by_label("Name", exact=True).fill("copied")
    page.get_by_label("All instances").check()
    page.get_by_role("button", name="Create key").click()
    key = page.get_by_label("API key", exact=True).input_value()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    page.goto("/memory?instance=insecure-bot")
    page.get_by_label("Search", exact=True).focus()
    page.keyboard.press("ControlOrMeta+V")
    expect(page.get_by_label("Search", exact=True)).to_have_value(key)
