"""How pages look: what is written keeps its shape."""

from playwright.sync_api import Page

from tests.browser.conftest import Console

CODE = "def greet(name):\n    if name:\n        return name"


def test_code_keeps_its_indentation(console: Console, page: Page) -> None:
    slug = console.instance("code-bot", {"content": CODE})
    page.goto(f"/memory?instance={slug}")
    page.get_by_role("link", name="def greet").click()
    assert page.locator("p.memory-text").inner_text() == CODE
