"""Writing a memory with the comforts that scripts add: tags, the hint about a role, and when to forget it."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import Console


def test_tags_are_typed_completed_and_removed_with_a_click(console: Console, page: Page) -> None:
    slug = console.instance("tag-bot", {"content": "Tea", "tags": ["drink", "home"]})
    page.goto(f"/memory/new?instance={slug}")
    page.get_by_label("Content").fill("Coffee at work")
    page.get_by_text("More", exact=True).click()
    box = page.get_by_placeholder("Add a tag")
    assert page.locator("#id_tags_known option").count() == 2
    for tag in ("drink", "wrong", "drink"):
        box.fill(tag)
        box.press("Enter")
    box.fill("office")
    box.press(",")
    tags = page.locator("label.tag")
    expect(tags).to_have_text(["drink", "wrong", "office"])
    tags.nth(1).click()
    page.get_by_role("button", name="Save memory").click()
    page.wait_for_url("**/memory?*")
    saved = console.api("GET", f"/memories?instanceId={slug}&limit=1")["memories"][0]
    assert saved["tags"] == ["drink", "office"]

    page.goto(f"/memory/{saved['id']}?instance={slug}")
    page.get_by_role("button", name="Remove the tag drink").click()
    expect(page.locator("#tags .tag")).to_have_count(1)
    page.get_by_label("Add a tag").fill("late")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#tags .tag")).to_have_count(2)
    assert console.api("GET", f"/memories/{saved['id']}?instanceId={slug}")["memory"]["tags"] == ["office", "late"]


def test_enter_within_an_input_method_makes_no_tag(console: Console, page: Page) -> None:
    slug = console.instance("kana-bot", {"content": "Plain"})
    pressed = "new KeyboardEvent('keydown', {key: 'Enter', isComposing, bubbles: true})"
    enter = f"(field, isComposing) => field.dispatchEvent({pressed})"
    page.goto(f"/memory/new?instance={slug}")
    page.get_by_text("More", exact=True).click()
    tags = page.locator("[data-tag-input]")
    tags.fill("とうきょう")
    tags.evaluate(enter, True)
    expect(tags).to_have_value("とうきょう")
    tags.fill("東京")
    tags.evaluate(enter, False)
    expect(page.locator("[data-tag-editor] label.tag")).to_have_text(["東京"])
    page.goto(f"/memory?instance={slug}")
    page.get_by_label("Select: Plain").check()
    page.get_by_label("Tag to add").fill("とうきょう")
    page.get_by_label("Tag to add").evaluate(enter, True)
    page.get_by_label("Tag to add").fill("東京")
    page.get_by_label("Tag to add").evaluate(enter, False)
    expect(page.get_by_role("link", name="東京")).to_be_visible()
    assert console.api("GET", f"/memories?instanceId={slug}")["memories"][0]["tags"] == ["東京"]


def test_a_hint_about_the_role_is_taken_with_a_click(console: Console, page: Page) -> None:
    slug = console.instance("hint-bot")
    page.goto(f"/memory/new?instance={slug}")
    page.get_by_label("Content").press_sequentially("Never deploy on Fridays")
    page.get_by_role("button", name="Use role Lesson").click(delay=300)  # a finger presses longer than an answer takes
    expect(page.get_by_text("Its role will be Lesson.")).to_be_visible()
    page.get_by_role("button", name="Save memory").click()
    page.wait_for_url("**/memory?*")
    assert console.api("GET", f"/memories?instanceId={slug}")["memories"][0]["role"] == "lesson"


def test_nobody_is_sent_to_the_sign_in_while_writing(console: Console, page: Page) -> None:
    slug = console.instance("writing-bot")
    page.goto(f"/memory/new?instance={slug}")
    page.context.clear_cookies(name="sessionid")
    box = page.get_by_label("Content")
    for text in ("Never deploy on Fridays", "Never deploy on Saturdays"):
        with page.expect_response("**/memory/role-hint*"):
            box.fill(text)
    expect(box).to_have_value("Never deploy on Saturdays")
    page.get_by_role("button", name="Save memory").click()
    expect(page.get_by_text("You were signed out, so nothing was saved.")).to_have_count(1)


def test_a_hint_goes_when_its_role_is_chosen_by_hand(console: Console, page: Page) -> None:
    slug = console.instance("hand-bot")
    page.goto(f"/memory/new?instance={slug}")
    page.get_by_label("Content").press_sequentially("Never deploy on Fridays")
    hint = page.get_by_role("button", name="Use role Lesson")
    expect(hint).to_be_visible()
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Role").select_option("lesson")
    expect(hint).to_be_hidden()
    page.get_by_label("Role").select_option("decision")
    expect(hint).to_be_visible()


def test_a_date_is_asked_for_only_when_one_is_chosen(console: Console, page: Page) -> None:
    slug = console.instance("expiry-bot")
    page.goto(f"/memory/new?instance={slug}")
    page.get_by_text("More", exact=True).click()
    expect(page.get_by_label("On this date")).to_be_hidden()
    page.get_by_label("Forget it").select_option("On a date")
    expect(page.get_by_label("On this date")).to_be_visible()
    page.get_by_label("Forget it").select_option("In a week")
    expect(page.get_by_label("On this date")).to_be_hidden()
    page.get_by_label("Content").fill("The lift is broken")
    page.get_by_role("button", name="Save memory").click()
    page.wait_for_url("**/memory?*")
    assert console.api("GET", f"/memories?instanceId={slug}")["memories"][0]["expiresAt"]


def test_a_person_is_forgotten(console: Console, page: Page) -> None:
    slug = console.instance("forget-bot", {"content": "Tea", "owner": "ann"}, {"content": "Ann is nice"})
    page.goto(f"/memory?instance={slug}&owner=ann")
    page.get_by_role("link", name="Forget this person").click()
    page.get_by_label("Type the id to confirm").fill("ann")
    page.get_by_role("button", name="Forget everything").click()
    expect(page.get_by_text("Nothing of this person is left")).to_be_visible()
    page.get_by_role("link", name="Audit log").last.click()
    expect(page.get_by_text("Forgot a person").last).to_be_visible()
    assert console.api("GET", f"/memories?instanceId={slug}")["total"] == 1


def test_the_first_wrong_field_has_the_focus(console: Console, page: Page) -> None:
    slug = console.instance("unwritten-bot")
    page.goto(f"/memory/new?instance={slug}")
    page.get_by_role("button", name="Save memory").click()
    expect(page.get_by_text("This may not be empty.")).to_be_visible()
    expect(page.get_by_label("Content")).to_be_focused()
    page.goto("/keys/new")
    page.get_by_label("Name", exact=True).fill("engine")
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_text("Choose at least one instance.")).to_be_visible()
    expect(page.get_by_role("group", name="Or only these instances").get_by_role("checkbox").first).to_be_focused()
