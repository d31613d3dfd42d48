"""The settings page as a person uses it."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import Console

WARNING = "no OpenAI or Azure key reaches this instance"


def test_the_warning_goes_with_a_key_and_comes_back_without(console: Console, page: Page) -> None:
    slug = console.instance("keyless-bot")
    page.goto(f"/memory?instance={slug}")
    expect(page.get_by_text(WARNING)).to_be_visible()
    page.get_by_role("link", name="Add a key in the settings").click()
    field = page.locator("input#openai-key")
    expect(field).to_be_visible()
    field.fill("sk-" + "test-0123456789wxyz")
    page.get_by_role("button", name="Save").first.click()
    expect(page.get_by_text(WARNING)).to_be_hidden()
    expect(page.get_by_text("wxyz")).to_be_visible()
    assert "0123456789" not in page.content()
    page.goto(f"/memory?instance={slug}")
    expect(page.get_by_text(WARNING)).to_be_hidden()
    page.goto(f"/instances/{slug}/settings")
    page.get_by_role("button", name="Remove").first.click()
    expect(page.get_by_text(WARNING)).to_be_visible()


def test_the_focus_stays_on_the_button_that_tests_a_key(console: Console, page: Page) -> None:
    slug = console.instance("tested-bot")
    page.goto(f"/instances/{slug}/settings")
    page.locator("input#openai-key").fill("no key")
    button = page.get_by_role("button", name="Test")
    button.press("Enter")
    expect(page.get_by_text("This does not look like an API key.")).to_be_visible()
    expect(button).to_be_focused()


def test_memory_switched_off_needs_no_key(console: Console, page: Page) -> None:
    slug = console.instance("sleeping-bot")
    page.goto(f"/instances/{slug}/settings")
    page.get_by_label("Memory is on").uncheck()
    page.get_by_role("button", name="Save").first.click()
    expect(page.get_by_text(WARNING)).to_be_hidden()
    assert console.api("GET", f"/instances/{slug}")["instance"]["warnings"] == []
