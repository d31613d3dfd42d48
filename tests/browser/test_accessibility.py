"""Every page, light and dark, wide and narrow: axe finds nothing, and nothing is wider than the screen."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import Console
from tests.browser.test_duplicates import alike
from tests.browser.test_review import waiting

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
# The page, or a table that would have to be scrolled to be read.
TOO_WIDE = """[document.documentElement, ...document.querySelectorAll(".table-wrap")].some(
    (part) => part.scrollWidth > part.clientWidth)"""
# Of all rules only that of contrast asks for colours.
THEMES: dict[Literal["light", "dark"], dict[str, Any]] = {"light": {}, "dark": {"runOnly": ["color-contrast"]}}
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def addresses(console: Console) -> dict[str, str]:
    memory = console.api("GET", "/memories?instanceId=support-bot&limit=1")["memories"][0]["id"]
    conversation = console.api("GET", "/conversations?instanceId=support-bot&limit=1")["conversations"][0]["id"]
    recall = console.api("POST", "/recall", {"instanceId": "support-bot", "query": "How do refunds work?"})["recallId"]
    inbox = waiting(console, "inbox-bot", 2)
    doubtful = console.api("GET", "/reviews?instanceId=inbox-bot&why=conflict")["reviews"][0]["memory"]["id"]
    pairs = alike(console, "alike-bot")
    pair = console.api("GET", "/duplicates?instanceId=alike-bot")["duplicates"][0]["id"]
    console.api("PATCH", f"/memories/{memory}?instanceId=support-bot", {"content": "Corrected", "importance": 3})
    console.api("POST", "/jobs", {"instanceId": "support-bot", "kind": "embed-memories"})
    console.instance("quiet-bot")
    steps = {
        "instanceId": "support-bot",
        "name": "Refund an order",
        "trigger": "wants a refund",
        "steps": ["Look", "Pay"],
    }
    procedure = console.api("POST", "/procedures", steps)["procedure"]["id"]
    memories = console.api("GET", "/memories?instanceId=support-bot&limit=100")["memories"]
    owner = next(memory["owner"] for memory in memories if memory["owner"])
    console.send(f"/memories/{memory}/attachments?instanceId=support-bot&name=note.txt", b"A note")
    report = console.send("/import?instanceId=support-bot&dryRun=true", b'{"content": ""}\n{"content": "New"}')
    imported = report["job"]["id"]
    return {
        "overview": "/overview?instance=support-bot",
        "overview, much to do": "/overview?instance=inbox-bot",
        "overview, empty": "/overview?instance=quiet-bot",
        "memory": "/memory?instance=support-bot",
        "memory, selected": "/memory?instance=support-bot&select=page",
        "memory, filtered": "/memory?instance=support-bot&minImportance=9",
        "memory, nothing matches": "/memory?instance=support-bot&owner=nobody",
        "memory, wrong filter": "/memory?instance=support-bot&minImportance=12",
        "memory, searched": "/memory?instance=support-bot&search=refund",
        "memory, nothing found": "/memory?instance=quiet-bot&search=refund",
        "memory, empty": "/memory?instance=quiet-bot",
        "new memory": "/memory/new?instance=support-bot",
        "one memory": f"/memory/{memory}?instance=support-bot",
        "edit memory": f"/memory/{memory}/edit?instance=support-bot",
        "delete memory": f"/memory/{memory}/delete?instance=support-bot",
        "history": f"/memory/{memory}/history?instance=support-bot",
        "no history": f"/memory/{doubtful}/history?instance=inbox-bot",
        "inbox": inbox,
        "inbox, empty": "/memory/review?instance=quiet-bot",
        "review, edit": f"/memory/{doubtful}/review?instance=inbox-bot&action=edit",
        "review, merge": f"/memory/{doubtful}/review?instance=inbox-bot&action=merge",
        "duplicates": pairs,
        "duplicates, merge": f"/memory/duplicates/{pair}?instance=alike-bot",
        "duplicates, empty": "/memory/duplicates?instance=quiet-bot",
        "activity": "/activity?instance=support-bot",
        "activity, empty": "/activity?instance=quiet-bot",
        "conversations": "/conversations?instance=support-bot",
        "one conversation": f"/conversations/{conversation}?instance=support-bot",
        "recall": "/recall?instance=support-bot",
        "recall, asked": "/recall?instance=support-bot&query=How+do+refunds+work%3F&limit=2&ask=refund",
        "recall, asked why": f"/recall?instance=support-bot&query=How+do+refunds+work%3F&memory={memory}",
        "recall, wrong setting": "/recall?instance=support-bot&query=refund&limit=0",
        "recall log": "/recall/log?instance=support-bot",
        "recall log, empty": "/recall/log?instance=quiet-bot",
        "one recall": f"/recall/{recall}?instance=support-bot",
        "golden queries, empty": "/recall/golden?instance=quiet-bot",
        "import": "/memory/import?instance=support-bot",
        "an import": f"/memory/import/{imported}?instance=support-bot",
        "procedures": "/procedures?instance=support-bot&match=refund",
        "procedures, empty": "/procedures?instance=quiet-bot",
        "new procedure": "/procedures/new?instance=support-bot",
        "edit procedure": f"/procedures/{procedure}?instance=support-bot",
        "delete procedure": f"/procedures/{procedure}/delete?instance=support-bot",
        "try extraction": f"/conversations/try?instance=support-bot&conversation={conversation}",
        "audit log": "/audit?instance=support-bot",
        "audit log, nothing": "/audit?instance=support-bot&actor=nobody",
        "audit log, wrong filter": "/audit?instance=support-bot&memoryId=x",
        "forget a person": "/forget?instance=support-bot",
        "forget somebody": f"/forget?instance=support-bot&owner={owner}",
        "forget nobody": "/forget?instance=support-bot&owner=nobody",
        "memory of one person": f"/memory?instance=support-bot&owner={owner}",
        "instances": "/instances",
        "new instance": "/instances/new",
        "settings": "/instances/support-bot/settings",
        "keys": "/keys",
        "new key": "/keys/new",
        "users": "/users",
        "new user": "/users/new",
        "password": "/password",
        "not found": "/memory?instance=no-such-bot",
    }


@pytest.fixture(params=[WIDE, NARROW], ids=["wide", "narrow"])
def reader(request: pytest.FixtureRequest, console: Console, browser: Browser, session_state: Any) -> Iterator[Page]:
    context = browser.new_context(base_url=console.url, storage_state=session_state, viewport=request.param)
    yield context.new_page()
    context.close()


def problems(page: Page) -> list[str]:
    """In both themes, without loading the page twice. Without motion, because colours change slowly with it."""
    page.evaluate(AXE)
    wrong = []
    for theme, options in THEMES.items():
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        for rule in page.evaluate("options => axe.run(options)", options)["violations"]:
            wrong += [f"{theme}: {rule['id']}: {node['html']} – {node['failureSummary']}" for node in rule["nodes"]]
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        wrong.append("wider than the screen")
    return wrong


def test_every_page(reader: Page, addresses: dict[str, str]) -> None:
    wrong = {}
    for name, address in addresses.items():
        reader.goto(address)
        if found := problems(reader):
            wrong[name] = found
    assert wrong == {}


def test_nothing_is_wider_than_a_page_enlarged_four_times(
    console: Console, browser: Browser, session_state: Any, addresses: dict[str, str]
) -> None:
    name = "auth0|" + "0123456789" * 15
    console.instance("wide-bot")
    console.api(
        "POST", "/conversations", {"instanceId": "wide-bot", "userId": name, "channel": "c" * 60, "title": name}
    )
    console.api("POST", "/recall", {"instanceId": "wide-bot", "query": name, "userId": name})
    wide = {name: f"/{name}?instance=wide-bot" for name in ("conversations", "recall/log")}
    wide["inbox of one person"] = waiting(console, "wide-inbox-bot", 1, owner=name)
    context = browser.new_context(
        base_url=console.url, storage_state=session_state, viewport={"width": 320, "height": 256}
    )
    page = context.new_page()
    wrong = []
    for title, address in {**addresses, **wide}.items():
        page.goto(address)
        if page.evaluate(TOO_WIDE):
            wrong.append(title)
    context.close()
    assert wrong == []


def test_the_sign_in_page(console: Console, browser: Browser) -> None:
    context = browser.new_context(base_url=console.url)
    page = context.new_page()
    page.goto("/login")
    assert problems(page) == []
    context.close()
