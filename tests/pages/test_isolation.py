"""Every page that is about an instance, for somebody who may not open it: the same 404 as for nothing at all."""

import io
import re

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from instances.models import Instance
from memories.attachments import attach
from memories.embedding.backfill import ask_for_embedding
from memories.recall.golden import GoldenDraft, marks_for, save_golden
from memories.recall.recalling import RecallRequest, recall
from tests.factories import make_conversation, make_instance, make_key, make_memory, make_pair, make_procedure, scope_of

pytestmark = pytest.mark.django_db

NOTHING = "01a1e464-c166-76bb-b939-dd59bab3e80b"
# Not about one instance: who is asking, the server, or lists that show only what the reader may open.
OTHERS = {"", "login", "logout", "password", "healthz", "readyz", "metrics", "keys", "keys/new", "users", "users/new"}
OTHERS |= {"instances", "instances/new", "instances/demo", "instances/remove-demo", "mcp"}
BY_OTHER_IDS = ("keys/", "users/", "api")


def routes(patterns: list[URLPattern | URLResolver] | None = None, prefix: str = "") -> list[str]:
    found = []
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        route = prefix + str(pattern.pattern)
        found += routes(pattern.url_patterns, route) if isinstance(pattern, URLResolver) else [route]
    return found


def about_an_instance() -> list[str]:
    return sorted(
        route
        for route in routes()
        if route not in OTHERS and not route.startswith(BY_OTHER_IDS) and not route.startswith("^api")
    )


def address(route: str, slug: str, ids: dict[str, str]) -> str:
    """The route with the ids filled in; the instance in its path or in its query."""
    path = re.sub(r"<(?:str|slug):slug>", slug, route)
    path = path.replace("<uuid:attachment_id>", ids["attachment"])
    for word, id in ids.items():
        if route.startswith(word):
            path = re.sub(r"<uuid:\w+>|<str:id>", id, path)
    return f"/{path}?instance={slug}"


def test_the_table_is_not_empty() -> None:
    assert len(about_an_instance()) >= 12
    assert {"overview", "memory", "memory/new", "memory/bulk", "conversations"} <= set(about_an_instance())


@pytest.mark.parametrize("route", about_an_instance())
def test_a_stranger_cannot_tell_it_from_nothing(
    route: str, alice: Client, mallory: Client, support: Instance, sales: Instance
) -> None:
    memory = make_memory(support, "A secret of the support bot")
    conversation = make_conversation(support, "Hello", title="A secret talk")
    procedure = make_procedure(support, "A secret way")
    job = ask_for_embedding(scope_of(support))
    asked = recall(scope_of(support), RecallRequest(query="A secret question"))
    golden = save_golden(scope_of(support), GoldenDraft(query="A secret question", expected=[memory.id]))
    pair = make_pair(memory, make_memory(support, "The same secret"))
    ids = {
        "memory/jobs/": str(job.id),
        "activity/": str(job.id),
        "memory/duplicates/": str(pair.id),
        "memory/": str(memory.id),
        "conversations/": str(conversation.id),
        "recall/golden/": str(golden.id),
        "recall/": str(asked.id),
        "procedures/": str(procedure.id),
    }
    file = attach(scope_of(support), memory.id, io.BytesIO(b"A secret file"), name="secret.txt")
    ids["attachment"] = str(file.id)
    nowhere = dict.fromkeys(ids, NOTHING)
    for send in (mallory.get, mallory.post):
        absent = send(address(route, "no-such-bot", nowhere))
        theirs = send(address(route, "support-bot", ids))
        assert (theirs.status_code, theirs.content) == (absent.status_code, absent.content)
        assert theirs.status_code in (404, 405)
        if "<uuid" in route:  # an id of theirs, in an instance of one's own
            mixed = send(address(route, "sales-bot", ids))
            assert mixed.status_code == send(address(route, "sales-bot", nowhere)).status_code
            assert b"secret" not in mixed.content
    memory.refresh_from_db()
    assert (memory.content, memory.pinned) == ("A secret of the support bot", False)
    assert marks_for(scope_of(support), "A secret question", "") == {memory.id: True}
    assert alice.get("/memory?instance=support-bot").status_code == 200


@pytest.mark.parametrize("path", ["/overview", "/memory", "/instances", "/users"])
def test_a_key_opens_no_page(path: str) -> None:
    instance = make_instance("support-bot")
    response = Client(headers={"Authorization": f"Bearer {make_key(instance)}"}).get(path)
    assert response.status_code == 302
    assert response["Location"].startswith("/login")
