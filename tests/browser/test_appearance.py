"""How pages look: what is written keeps its shape, in colours of the system and on paper too."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PASSWORD, Console

FAILED = """
from datetime import timedelta
from django.utils import timezone
from instances.models import Instance
from tests.factories import make_failed_job
began = timezone.now() - timedelta(minutes=54)
make_failed_job(Instance.objects.get(slug="{slug}"), "No key reaches it.", started_at=began, tokens=1200000, total=5048)
"""
TABLES = """
from datetime import timedelta
from django.utils import timezone
from accounts.models import ApiKey
from instances.models import Instance
from tests.factories import make_conversation, make_key, make_procedure, make_user
bot = Instance.objects.get(slug="{slug}")
make_key(bot)
ago = timezone.now() - timedelta(minutes=54)
ApiKey.objects.update(created_at=ago, last_used_at=ago, expires_at=timezone.now() + timedelta(days=90))
make_conversation(bot, "Hello", title="A question about an invoice", channel="telephone", userId="customer-0025")
make_procedure(bot, "Refund an order", trigger="wants their money back")
make_user("somebody", bot)
"""
CODE = "def greet(name):\n    if name:\n        return name"
CUT_OFF = "all => all.map(table => table.scrollWidth - table.clientWidth)"
BACKGROUND = "element => getComputedStyle(element).backgroundColor"
RIGHT = "element => element.getBoundingClientRect().right"
HEIGHTS = "all => all.map(each => each.offsetHeight + parseFloat(getComputedStyle(each).marginBottom))"
BELOW = """(panel, last) => panel.getBoundingClientRect().bottom
    - panel.querySelector(last).getBoundingClientRect().bottom"""
OUTLINE = "element => getComputedStyle(element).outlineStyle"
PRESSED = ":is(button, a.button):not(.visually-hidden):visible"


@pytest.fixture(scope="module")
def long_name(console: Console) -> str:
    name = "Donaudampfschifffahrtsgesellschaftskapitänsassistenz"
    console.api("POST", "/instances", {"slug": "long-name", "name": name})
    return "long-name"


def test_code_keeps_its_indentation(console: Console, page: Page) -> None:
    slug = console.instance("code-bot", {"content": CODE})
    page.goto(f"/memory?instance={slug}")
    page.get_by_role("link", name="def greet").click()
    assert page.locator("p.memory-text").inner_text() == CODE


def test_short_lines_that_are_cut_off_can_be_shown(console: Console, page: Page) -> None:
    slug = console.instance("lines-bot", {"content": "Milk\nBread\nTea\nSalt"})
    page.goto(f"/memory?instance={slug}")
    text = page.get_by_role("link", name="Milk")
    assert text.evaluate("text => text.scrollHeight > text.clientHeight")
    page.get_by_label("Show all or less of this memory").click()
    assert text.evaluate("text => text.scrollHeight === text.clientHeight")


@pytest.mark.parametrize("path", ["/activity", "/forget", "/memory", "/memory/import", "/overview", "/procedures"])
def test_a_long_name_stays_on_a_narrow_screen(console: Console, page: Page, long_name: str, path: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{path}?instance={long_name}")
    expect(page.get_by_text("Donaudampfschifffahrt").locator("visible=true").last).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_long_username_stays_in_the_bar(console: Console, page: Page) -> None:
    name = "friederike.schmidt-hohenstein@support.customers.example.org"
    page.goto("/users/new")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create user").click()
    page.context.clear_cookies(name="sessionid")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/login")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("No instance to show yet")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.locator("header summary").click()
    expect(page.get_by_role("paragraph").filter(has_text=name)).to_be_in_viewport(ratio=1)


def test_a_failed_job_stays_on_a_screen_of_medium_width(console: Console, page: Page) -> None:
    slug = console.instance("failed-bot")
    console.manage("shell", "-c", FAILED.format(slug=slug))
    page.set_viewport_size({"width": 768, "height": 900})
    page.goto(f"/activity?instance={slug}")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 768


def test_menus_stay_on_a_narrow_screen_and_name_no_keys(console: Console, page: Page) -> None:
    page.goto("/memory?instance=support-bot")
    expect(page.locator(".search-box kbd")).to_be_visible()
    for width in (360, 390, 480, 620):
        page.set_viewport_size({"width": width, "height": 844})
        page.reload()
        expect(page.locator(".search-box kbd")).to_be_hidden()
        page.get_by_text("Import, export").click()
        menu = page.locator("#exports")
        expect(menu).to_be_in_viewport(ratio=1)
        for choice in ("Import…", "Export as JSON lines", "Export as CSV"):
            height = menu.get_by_text(choice).evaluate("link => link.getBoundingClientRect().height")
            assert height < 40, f"{choice} takes two lines at {width}"


def test_the_conversations_of_memories_that_have_none_take_no_room(console: Console, page: Page) -> None:
    slug = console.instance("roomy-bot", {"content": "Ann likes tea", "pinned": True}, {"content": "Bob likes milk"})
    page.goto(f"/memory?instance={slug}")
    expect(page.get_by_role("columnheader", name="Conversation")).to_be_hidden()
    last_column, table = page.get_by_role("columnheader", name="Actions"), page.get_by_role("table")
    assert last_column.evaluate(RIGHT) == table.evaluate(RIGHT)
    page.goto("/memory?instance=support-bot")
    expect(page.get_by_role("columnheader", name="Conversation")).to_be_visible()


def test_where_nothing_is_to_be_said_nothing_takes_room(console: Console, page: Page) -> None:
    console.api("POST", "/instances", {"slug": "keyed-bot", "openaiKey": "sk-" + "0123456789" * 4})
    page.goto("/memory?instance=keyed-bot")
    assert page.locator(".notices").evaluate_all(HEIGHTS) == [0, 0]
    console.api("POST", "/procedures", {"instanceId": "keyed-bot", "name": "Refund", "steps": ["Look", "Pay"]})
    page.goto("/procedures?instance=keyed-bot")
    assert page.locator("form.panel").evaluate(BELOW, "#match-help") == 17  # the padding and the line


def test_a_long_name_of_a_file_stays_on_the_screen(console: Console, page: Page) -> None:
    page.goto(f"/memory?instance={console.instance('file-bot', {'content': 'With a file'})}")
    page.get_by_role("link", name="With a file").click()
    file = {"name": f"{'Report_' * 20}.txt", "mimeType": "text/plain", "buffer": b"Hello"}
    page.get_by_label("File to attach").set_input_files(file)
    page.get_by_role("button", name="Attach", exact=True).click()
    expect(page.get_by_text("Attached “Report_")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 1280


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


def test_paper_shows_what_is_said_and_nothing_to_press(console: Console, page: Page) -> None:
    text = " ".join(["A long memory with many words."] * 30)
    slug = console.instance("paper-bot", {"content": text, "tags": ["vip"]})
    page.emulate_media(media="print", color_scheme="dark")
    page.goto(f"/memory?instance={slug}")
    for control in (PRESSED, "input:visible", "nav.side:visible", "header.bar:visible"):
        expect(page.locator(control)).to_have_count(0)
    shown = page.locator("td .memory-text")
    assert shown.evaluate("element => element.scrollHeight <= element.clientHeight")
    assert shown.evaluate("element => getComputedStyle(element).color") == "rgb(22, 27, 34)"
    page.goto(shown.get_attribute("href") or "")
    expect(page.get_by_text("vip", exact=True)).to_be_visible()
    expect(page.locator(PRESSED)).to_have_count(0)


def test_tables_are_never_cut_off(console: Console, page: Page) -> None:
    """Also where the navigation leaves a page of 1,000 less room than one of 800 has without it."""
    slug = console.instance("tables-bot", {"content": "Ann likes tea"})
    console.manage("shell", "-c", TABLES.format(slug=slug))
    console.api("POST", "/recall", {"instanceId": slug, "query": "What does Ann like?", "userId": "customer-0025"})
    lists = [f"/{name}?instance={slug}" for name in ("activity", "audit", "conversations", "procedures", "recall/log")]
    wrong = []
    for path in ("/keys", "/users", "/users/new", "/instances", *lists):
        page.goto(path)
        for width in (700, 768, 800, 834, 880, 900, 960, 1024, 1100):
            page.set_viewport_size({"width": width, "height": 900})
            if any(page.locator(".table-wrap").evaluate_all(CUT_OFF)):
                wrong.append((path, width))
    assert wrong == []
