"""The Memory screen as a person uses it."""

import re
from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PASSWORD, Console
from tests.browser.test_review import waiting


def rows(page: Page) -> list[str]:
    return page.locator("td.c-content a.memory-text").all_inner_texts()


def facts(n: int, **fields: object) -> list[dict[str, object]]:
    return [{"content": f"Fact number {i}", "category": "fact", **fields} for i in range(n)]


def test_sign_in_pick_an_instance_and_browse(console: Console, page: Page) -> None:
    page.goto("/")
    page.get_by_label("Instance").select_option("support-bot")
    expect(page).to_have_url(re.compile("instance=support-bot"))
    assert len(rows(page)) > 10
    page.get_by_label("Instance").select_option("sales-bot")
    expect(page).to_have_url(re.compile("instance=sales-bot"))
    page.goto("/memory")
    expect(page).to_have_url(re.compile("instance=sales-bot"))


def test_times_are_those_of_the_readers_zone(console: Console, browser: Browser, session_state: Any) -> None:
    slug = console.instance("zone-bot", {"content": "The launch", "occurredAt": "2026-05-01T16:30:00Z"})
    context = browser.new_context(base_url=console.url, storage_state=session_state, timezone_id="America/New_York")
    page = context.new_page()
    page.goto(f"/memory?instance={slug}")
    page.get_by_role("link", name="The launch").click()
    expect(page.get_by_title("1 May 2026, 12:30:00 EDT")).to_be_visible()
    context.close()


def test_going_back_names_the_instance_that_is_shown(console: Console, page: Page) -> None:
    page.goto("/memory?instance=support-bot")
    page.get_by_label("Instance").select_option("sales-bot")
    expect(page).to_have_url(re.compile("instance=sales-bot"))
    page.go_back()
    expect(page).to_have_url(re.compile("instance=support-bot"))
    expect(page.get_by_label("Instance")).to_have_value("support-bot")


def test_a_page_that_was_open_while_somebody_signed_in_again_can_be_sent(console: Console, page: Page) -> None:
    slug = console.instance("again-bot")
    page.goto(f"/memory/new?instance={slug}")
    page.get_by_label("Content").fill("Written before")
    cookies = {cookie["name"]: cookie for cookie in page.context.cookies()}
    page.context.add_cookies([{**cookies["csrftoken"], "value": "a" * 32}])
    page.get_by_role("button", name="Save memory").click()
    expect(page.get_by_text("Saved. The assistant can use it on its next turn.")).to_be_visible()
    assert rows(page) == ["Written before"]


def test_filter_page_back_and_reload(console: Console, page: Page) -> None:
    slug = console.instance("browse-bot", *facts(40), {"content": "An event", "category": "event", "tags": ["vip"]})
    page.goto(f"/memory?instance={slug}")
    page.get_by_role("link", name="Fact 40").click()
    expect(page.get_by_role("link", name="Fact 40")).to_have_attribute("aria-current", "true")
    expect(page).to_have_url(re.compile("category=fact"))
    page.get_by_role("link", name="Next page").click()
    expect(page.get_by_text("26–40 of 40")).to_be_visible()
    expect(page.locator("[id=memories]")).to_have_count(1)
    page.reload()
    expect(page.get_by_text("26–40 of 40")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("1–25 of 40")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("1–25 of 41")).to_be_visible()
    page.get_by_text("Filters", exact=True).click()
    page.get_by_label("Tag", exact=True).fill("vip")
    page.get_by_label("Tag", exact=True).press("Tab")
    expect(page.get_by_text("Tag: vip")).to_be_visible()
    assert rows(page) == ["An event"]
    assert "role=" not in page.url
    page.get_by_title("Remove this filter").click()
    expect(page.get_by_text("1–25 of 41")).to_be_visible()


def test_going_back_after_the_session_has_ended_asks_to_sign_in(console: Console, page: Page) -> None:
    slug = console.instance("back-bot", *facts(2), {"content": "An event", "category": "event"})
    page.goto(f"/memory?instance={slug}")
    page.get_by_role("link", name="Fact 2").click()
    expect(page).to_have_url(re.compile("category=fact"))
    page.context.clear_cookies(name="sessionid")
    page.go_back()
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{console.url}/memory?instance={slug}")
    assert len(rows(page)) == 3


def test_the_focus_stays_when_the_list_changes(console: Console, page: Page) -> None:
    slug = console.instance("focus-bot", *facts(60), {"content": "An event", "category": "event"})
    page.goto(f"/memory?instance={slug}")
    page.get_by_role("link", name="Fact 60").press("Enter")
    expect(page).to_have_url(re.compile("category=fact"))
    expect(page.get_by_role("link", name="Fact 60")).to_be_focused()
    page.get_by_role("link", name="Next page").press("Enter")
    expect(page.get_by_text("26–50 of 60")).to_be_visible()
    expect(page.get_by_role("link", name="Next page")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("51–60 of 60")).to_be_visible()
    expect(page.get_by_role("link", name="Page 3")).to_be_focused()  # there is no next page


def test_what_changed_is_said_where_a_screen_reader_listens(console: Console, page: Page) -> None:
    """In an element that was there before: one that comes with its text is not read aloud."""
    slug = console.instance("said-bot", *facts(30), {"content": "An event", "category": "event"})
    page.goto(f"/memory?instance={slug}")
    said = page.locator("#said").element_handle()
    page.get_by_role("link", name="Fact 30").click()
    page.wait_for_function("said => said.isConnected && said.textContent === '30 memories match'", arg=said)
    page.get_by_role("link", name="Next page").click()
    page.wait_for_function("said => said.isConnected && said.textContent === '30 memories match, page 2'", arg=said)
    page.goto(waiting(console, "heard-bot", 1))
    told = page.locator("#messages").element_handle()
    page.get_by_role("button", name="Approve", exact=True).first.click()
    page.wait_for_function("told => told.isConnected && told.textContent.includes('Approved')", arg=told)


def test_create_with_an_error_then_with_success(console: Console, page: Page) -> None:
    slug = console.instance("create-bot")
    page.goto(f"/memory?instance={slug}")
    expect(page.get_by_text("remembers nothing yet")).to_be_visible()
    page.get_by_role("link", name="New memory").first.click()
    page.get_by_role("button", name="Save memory").click()
    expect(page.get_by_text("This may not be empty.")).to_be_visible()
    page.get_by_label("Content").fill("Carol manages Dan's team.")
    page.get_by_label("Category").select_option("relationship")
    page.get_by_label("9", exact=True).check(force=True)
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Tags").fill("people, org")
    page.get_by_role("button", name="Save memory").click()
    expect(page.get_by_text("Saved. The assistant can use it on its next turn.")).to_be_visible()
    assert rows(page) == ["Carol manages Dan's team."]
    memory = console.api("GET", f"/memories?instanceId={slug}")["memories"][0]
    assert (memory["category"], memory["importance"], memory["tags"]) == ("relationship", 9, ["people", "org"])


def test_pin_without_leaving_the_list(console: Console, page: Page) -> None:
    slug = console.instance("pin-bot", *facts(2))
    page.goto(f"/memory?instance={slug}")
    pin = page.get_by_role("button", name="Pin", exact=True).first
    expect(pin).to_have_attribute("aria-pressed", "false")
    pin.click()
    expect(page.locator("tr button[aria-pressed=true]")).to_have_count(1)
    assert console.api("GET", f"/memories?instanceId={slug}&pinned=true")["total"] == 1
    page.reload()
    expect(page.locator("tr button[aria-pressed=true]")).to_have_count(1)


def test_delete_one_from_its_row(console: Console, page: Page) -> None:
    slug = console.instance("trash-bot", *facts(2))
    page.goto(f"/memory?instance={slug}")
    page.get_by_role("link", name="Delete").first.click()
    dialog = page.get_by_role("dialog", name="Delete this memory for good?")
    expect(dialog.get_by_text("Delete this memory for good?")).to_be_visible()
    dialog.get_by_role("link", name="Keep it").click()
    expect(dialog).to_be_hidden()
    page.get_by_role("link", name="Delete").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Deleted 1 memory")).to_be_visible()
    assert console.api("GET", f"/memories?instanceId={slug}")["total"] == 1


def test_a_page_can_be_selected_on_a_phone(console: Console, page: Page) -> None:
    slug = console.instance("narrow-bot", *facts(3))
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/memory?instance={slug}")
    page.get_by_text("Select this page").click()
    expect(page.get_by_text("3 selected")).to_be_visible()


def test_bulk_delete_lists_what_goes_first(console: Console, page: Page) -> None:
    slug = console.instance("bulk-bot", *facts(30), {"content": "Stays", "category": "event"})
    page.goto(f"/memory?instance={slug}&category=fact")
    page.get_by_label("Select this page").check()
    expect(page.get_by_text("25 selected")).to_be_visible()
    page.get_by_role("link", name="Select all 30 matching").click()
    expect(page.get_by_text("All 30 selected")).to_be_visible()
    page.get_by_role("button", name="Delete…").click()
    expect(page.get_by_role("heading", name="Delete 30 memories")).to_be_visible()
    expect(page.get_by_text("Fact number 29")).to_be_visible()
    assert console.api("GET", f"/memories?instanceId={slug}")["total"] == 31
    page.get_by_role("button", name="Delete 30 memories").click()
    expect(page.get_by_text("Deleted 30 memories")).to_be_visible()
    assert console.api("GET", f"/memories?instanceId={slug}")["total"] == 1


def test_bulk_change_of_single_rows(console: Console, page: Page) -> None:
    slug = console.instance("change-bot", *facts(3))
    page.goto(f"/memory?instance={slug}")
    expect(page.get_by_role("button", name="Set category")).to_be_hidden()
    page.locator("input[name=ids]").nth(0).check()
    page.locator("input[name=ids]").nth(2).check()
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.get_by_label("New category").select_option("decision")
    page.get_by_role("button", name="Set category").click()
    expect(page.get_by_text("Changed 2 memories.")).to_be_visible()
    assert console.api("GET", f"/memories?instanceId={slug}&category=decision")["total"] == 2


def test_a_tag_that_is_missing_costs_no_selection(console: Console, page: Page) -> None:
    slug = console.instance("tagless-bot", *facts(3))
    page.goto(f"/memory?instance={slug}")
    page.locator("input[name=ids]").nth(0).check()
    page.get_by_role("button", name="Add tag").click()
    expect(page.get_by_label("Tag to add")).to_be_focused()
    expect(page.get_by_text("1 selected")).to_be_visible()
    page.get_by_role("button", name="Pin", exact=True).first.click()
    expect(page.get_by_text("Changed 1 memory.")).to_be_visible()


def test_enter_adds_a_tag_and_changes_nothing_else(console: Console, page: Page) -> None:
    slug = console.instance("enter-bot", *facts(2, tags=["old"]))
    page.goto(f"/memory?instance={slug}")
    box = page.locator("input[name=ids]").nth(0)
    box.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 selected")).to_be_visible()
    page.get_by_label("Tag to add").press("Enter")
    expect(page.get_by_text("1 selected")).to_be_visible()
    page.get_by_label("Tag to add").fill("new")
    page.get_by_label("Tag to add").press("Enter")
    expect(page.get_by_text("Changed 1 memory.")).to_be_visible()
    page.locator("a.memory-text").nth(0).click()
    page.get_by_label("Add a tag").fill("newest")
    page.get_by_label("Add a tag").press("Enter")
    expect(page.locator("#tags").get_by_role("link", name="newest")).to_be_visible()
    memories = console.api("GET", f"/memories?instanceId={slug}")["memories"]
    assert sorted((memory["category"], *sorted(memory["tags"])) for memory in memories) == [
        ("fact", "new", "newest", "old"),
        ("fact", "old"),
    ]


def test_the_focus_stays_among_the_tags_when_one_goes(console: Console, page: Page) -> None:
    slug = console.instance("untag-bot", *facts(1, tags=["one", "three", "two"]))
    page.goto(f"/memory?instance={slug}")
    page.locator("a.memory-text").click()
    page.get_by_role("button", name="Remove the tag three").press("Enter")
    expect(page.get_by_role("button", name="Remove the tag one")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#tags").get_by_role("link", name="two")).to_be_focused()


def test_escape_leads_from_a_menu_back_to_its_button(console: Console, page: Page) -> None:
    page.goto("/memory?instance=support-bot")
    menu = page.locator("summary", has_text="Import, export")
    menu.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Import…")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Import…")).to_be_hidden()
    expect(menu).to_be_focused()


def test_enter_twice_on_the_bin_deletes_nothing(console: Console, page: Page) -> None:
    slug = console.instance("careful-bot", *facts(1))
    page.goto(f"/memory?instance={slug}")
    page.get_by_role("link", name="Delete").first.press("Enter")
    expect(page.get_by_role("dialog").get_by_role("link", name="Keep it")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert console.api("GET", f"/memories?instanceId={slug}")["total"] == 1


def test_everything_works_without_scripts(console: Console, page: Page) -> None:
    slug = console.instance("plain-bot", *facts(30))
    context = page.context.browser.new_context(
        base_url=console.url, java_script_enabled=False, storage_state=page.context.storage_state()
    )
    plain = context.new_page()
    plain.goto(f"/memory?instance={slug}")
    plain.get_by_role("link", name="Select page").click()
    plain.get_by_role("button", name="Pin", exact=True).first.click()
    plain.goto(f"/memory?instance={slug}&select=page")
    plain.get_by_role("button", name="Delete…").click()
    plain.get_by_role("button", name="Delete 25 memories").click()
    expect(plain.get_by_text("Deleted 25 memories")).to_be_visible()
    plain.get_by_role("link", name="Delete").first.click()
    plain.get_by_role("button", name="Delete").click()
    expect(plain.get_by_text("Deleted 1 memory")).to_be_visible()
    context.close()
