"""Forms on a slow line."""

import re
import time

from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Console

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
