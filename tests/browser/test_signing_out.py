"""What the browser still shows after signing out."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import FLAGS, PASSWORD, Console, chromium

# Playwright switches off that a page is kept in memory for the back button; people's browsers do not.
NOT_KEPT = "--disable-back-forward-cache"


@pytest.fixture
def keeping(console: Console, browser: Browser) -> Iterator[Page]:
    """Somebody who has just signed in, in a browser that keeps pages."""
    launch = browser.browser_type.launch
    with launch(executable_path=chromium(), args=FLAGS, ignore_default_args=[NOT_KEPT]) as own:
        page = own.new_page(base_url=console.url)
        page.goto("/login")
        page.get_by_label("Username").fill("admin")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/memory*")
        yield page


def test_going_back_shows_nothing(console: Console, keeping: Page) -> None:
    slug = console.instance("shared-desk-bot", {"content": "Ann likes tea"})
    keeping.goto(f"/memory?instance={slug}")
    keeping.locator("summary", has_text="admin").click()
    keeping.get_by_role("button", name="Sign out").click()
    keeping.wait_for_url("**/login")
    keeping.evaluate("history.back()")
    expect(keeping).to_have_url(re.compile(f"/login\\?next=/memory%3Finstance%3D{slug}"))
    expect(keeping.get_by_text("Ann likes tea")).to_have_count(0)


def test_going_back_keeps_what_was_typed(console: Console, keeping: Page) -> None:
    slug = console.instance("half-a-thought-bot")
    keeping.goto(f"/memory/new?instance={slug}")
    keeping.get_by_label("Content").fill("Half a thought")
    keeping.get_by_role("link", name="Overview").click()
    keeping.wait_for_url("**/overview*")
    keeping.evaluate("history.back()")
    expect(keeping.get_by_label("Content")).to_have_value("Half a thought")
