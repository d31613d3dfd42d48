"""Forms on a slow line."""

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import Console
from tests.browser.test_review import waiting

NOT_ANSWERED = "The server did not answer as expected"
BELOW_BAR = """notice => notice.getBoundingClientRect().top
    - document.querySelector(".bar").getBoundingClientRect().bottom"""
TWO_CLICKS = "button => { button.click(); setTimeout(() => button.click(), 300); }"


def test_a_second_click_sends_nothing_again(console: Console, page: Page) -> None:
    posts: list[str] = []

    def hold(route: Route) -> None:
        if route.request.method == "POST":
            posts.append(route.request.url)
            time.sleep(1)
        route.continue_()

    page.route("**/users/new", hold)
    page.goto("/users/new")
    page.get_by_label("Username").fill("patience")
    page.get_by_role("button", name="Create user").evaluate(TWO_CLICKS)
    expect(page.locator("#shown-password")).to_have_value(re.compile("^[a-z]{4}(-[a-z]{4}){4}$"))
    assert len(posts) == 1
    page.go_back()
    page.get_by_label("Username").fill("patience")
    page.get_by_role("button", name="Create user").click()
    expect(page.get_by_text("A user with this name exists already.")).to_be_visible()


def test_what_takes_long_is_seen_to_be_on_its_way(console: Console, page: Page) -> None:
    slug = console.instance("slow-bot", {"content": "Ann likes tea"})
    page.goto(f"/memory?instance={slug}")
    line = page.locator("#progress")
    expect(line).to_have_css("opacity", "0")
    page.get_by_label("Select this page").check()
    press = "button => { button.click(); return getComputedStyle(document.getElementById('progress')).opacity; }"
    assert page.locator("button[value=pin]").evaluate(press) == "1"
    expect(page.get_by_text("Changed 1 memory.")).to_be_visible()
    expect(line).to_have_css("opacity", "0")


@pytest.fixture
def phone(console: Console, browser: Browser, session_state: Any) -> Iterator[Page]:
    """A narrow page whose line may break: the browser logs that as an error."""
    viewport = {"width": 390, "height": 600}
    context = browser.new_context(base_url=console.url, storage_state=session_state, viewport=viewport)
    yield context.new_page()
    context.close()


def test_what_fails_far_down_a_page_is_in_sight(console: Console, phone: Page) -> None:
    slug = console.instance("broken-line-bot", *({"content": f"Fact {n}"} for n in range(20)))
    phone.goto(f"/memory?instance={slug}")
    phone.route("**/pin?*", lambda route: route.abort())
    phone.get_by_role("button", name="Pin", exact=True).last.click()
    notice = phone.get_by_role("alert").filter(has_text=NOT_ANSWERED)
    expect(notice).to_be_in_viewport(ratio=1)
    assert notice.evaluate(BELOW_BAR) >= 0


def test_what_fails_in_a_dialog_is_said_there(console: Console, phone: Page) -> None:
    phone.goto(waiting(console, "broken-dialog-bot", 1))
    phone.get_by_role("link", name="Edit…").first.click()
    dialog = phone.locator("dialog")
    phone.route("**/review?*", lambda route: route.abort())
    dialog.get_by_role("button", name="Approve").click()
    expect(dialog.get_by_role("alert")).to_contain_text(NOT_ANSWERED)
    phone.unroute("**/review?*")
    dialog.get_by_role("button", name="Approve").click()
    expect(phone.locator("[data-row]")).to_have_count(1)
    expect(phone.get_by_text(NOT_ANSWERED)).to_be_hidden()
