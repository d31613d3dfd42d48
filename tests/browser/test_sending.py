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
