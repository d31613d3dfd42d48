"""How pages look: what is written keeps its shape, in colours of the system too."""

from playwright.sync_api import Page

from tests.browser.conftest import Console

CODE = "def greet(name):\n    if name:\n        return name"
BACKGROUND = "element => getComputedStyle(element).backgroundColor"
OUTLINE = "element => getComputedStyle(element).outlineStyle"


def test_code_keeps_its_indentation(console: Console, page: Page) -> None:
    slug = console.instance("code-bot", {"content": CODE})
    page.goto(f"/memory?instance={slug}")
    page.get_by_role("link", name="def greet").click()
    assert page.locator("p.memory-text").inner_text() == CODE


def test_what_is_chosen_current_and_focused_is_seen_in_forced_colours(console: Console, page: Page) -> None:
    page.emulate_media(forced_colors="active")
    page.goto("/memory?instance=support-bot&category=fact")
    chips = page.get_by_label("Categories").get_by_role("link")
    current, other = chips.filter(has_text="Fact"), chips.filter(has_text="Event")
    assert current.evaluate(BACKGROUND) != other.evaluate(BACKGROUND)
    navigation = page.get_by_label("Main").get_by_role("link")
    assert navigation.filter(has_text="Memory").evaluate(BACKGROUND) != navigation.first.evaluate(BACKGROUND)
    page.goto("/memory/new?instance=support-bot")
    importance = page.locator(".scale label")
    assert importance.filter(has_text="5").evaluate(BACKGROUND) != importance.filter(has_text="4").evaluate(BACKGROUND)
    importance.filter(has_text="5").locator("input").focus()
    page.keyboard.press("ArrowRight")
    assert importance.filter(has_text="6").evaluate(OUTLINE) == "solid"
    assert importance.filter(has_text="4").evaluate(OUTLINE) == "none"
