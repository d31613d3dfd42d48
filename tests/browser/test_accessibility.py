"""Every page, light and dark, wide and narrow: axe finds nothing, and nothing is wider than the screen."""

from collections.abc import Iterator
from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import Console

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def addresses(console: Console) -> dict[str, str]:
    memory = console.api("GET", "/memories?instanceId=support-bot&limit=1")["memories"][0]["id"]
    conversation = console.api("GET", "/conversations?instanceId=support-bot&limit=1")["conversations"][0]["id"]
    memories = console.api("GET", "/memories?instanceId=support-bot&limit=100")["memories"]
    owner = next(memory["owner"] for memory in memories if memory["owner"])
    console.instance("quiet-bot")
    refund = {"instanceId": "support-bot", "name": "Refund", "trigger": "money back", "steps": ["Look", "Pay"]}
    procedure = console.api("POST", "/procedures", refund)["procedure"]["id"]
    console.send(f"/memories/{memory}/attachments?instanceId=support-bot&name=note.txt", b"A note")
    report = console.send("/import?instanceId=support-bot&dryRun=true", b'{"content": ""}\n{"content": "New"}')
    imported = report["job"]["id"]
    return {
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
        "conversations": "/conversations?instance=support-bot",
        "one conversation": f"/conversations/{conversation}?instance=support-bot",
        "import": "/memory/import?instance=support-bot",
        "an import": f"/memory/import/{imported}?instance=support-bot",
        "procedures": "/procedures?instance=support-bot&match=refund",
        "procedures, empty": "/procedures?instance=quiet-bot",
        "new procedure": "/procedures/new?instance=support-bot",
        "edit procedure": f"/procedures/{procedure}?instance=support-bot",
        "delete procedure": f"/procedures/{procedure}/delete?instance=support-bot",
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


@pytest.fixture(
    params=[("light", WIDE), ("dark", WIDE), ("light", NARROW), ("dark", NARROW)],
    ids=lambda p: f"{p[0]} {p[1]['width']}",
)
def reader(request: pytest.FixtureRequest, console: Console, browser: Browser, session_state: object) -> Iterator[Page]:
    theme, viewport = request.param
    context = browser.new_context(base_url=console.url, storage_state=session_state, viewport=viewport)
    context.add_cookies([{"name": "theme", "value": theme, "url": console.url}])
    yield context.new_page()
    context.close()


def problems(page: Page) -> list[str]:
    page.evaluate(AXE)
    found = page.evaluate("axe.run()")["violations"]
    wrong = [f"{rule['id']}: {node['html']} – {node['failureSummary']}" for rule in found for node in rule["nodes"]]
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


def test_the_sign_in_page(console: Console, browser: Browser) -> None:
    for scheme in ("light", "dark"):
        context = browser.new_context(base_url=console.url, color_scheme=scheme)
        page = context.new_page()
        page.goto("/login")
        assert problems(page) == []
        context.close()
