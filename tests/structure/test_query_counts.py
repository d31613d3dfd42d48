"""How many SQL statements each page takes, against a committed baseline: no page may grow one per row.

UPDATE_QUERY_COUNTS=yes writes a new baseline.
"""

import json
import os
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memories.draft import MemoryChanges
from memories.embedding.backfill import embed_pending
from memories.recall.golden import GoldenDraft, save_golden
from memories.recall.recalling import RecallRequest, recall
from memories.store import change
from tests.factories import (
    make_conversation,
    make_failed_job,
    make_instance,
    make_key,
    make_memories,
    make_memory,
    make_pair,
    make_procedure,
    make_user,
    make_waiting,
    scope_of,
)

pytestmark = pytest.mark.django_db
BASELINE = Path(__file__).with_name("query_counts.json")


@pytest.fixture
def pages() -> dict[str, tuple[Client, str]]:
    bot = make_instance("support-bot")
    root = make_user("root", bot, superadmin=True)
    for n in range(12):
        make_instance()
        make_user(f"user-{n}", bot)
        make_key(bot)
        conversation = make_conversation(bot, "Hello", "Hi", title=f"Talk {n}")
        memory = make_memory(bot, tags=["a", "b"], sourceConversationId=str(conversation.id))
        procedure = make_procedure(bot, f"Way number {n}")
        change(scope_of(bot), memory.id, MemoryChanges(content=f"Memory number {n}, changed"))
        make_pair(memory, make_memory(bot))
        make_failed_job(bot, conversation_id=conversation.id)
        make_waiting(bot, conflict=memory, sourceConversationId=str(conversation.id))
    near = make_instance("vector-bot", embedder="offline")
    neighbour = make_memories(near, 12)[0]
    embed_pending(scope_of(near))
    asked = recall(scope_of(near), RecallRequest(query="memory number"))
    for n in range(3):
        draft = GoldenDraft(query=f"memory number {n}", expected=[neighbour.id])
        save_golden(scope_of(near), draft)
    client, caller = Client(), Client(headers={"authorization": f"Bearer {make_key(bot)}"})
    client.force_login(root, backend="django.contrib.auth.backends.ModelBackend")
    return {
        "/overview": (client, "/overview?instance=support-bot"),
        "/overview, with vectors and recalls": (client, "/overview?instance=vector-bot"),
        "/memory": (client, "/memory?instance=support-bot"),
        "/memory, filtered": (client, "/memory?instance=support-bot&tag=a&category=general"),
        "/memory, searched": (client, "/memory?instance=support-bot&search=memory+number"),
        "/memory, searched by meaning": (client, "/memory?instance=vector-bot&search=memory+number"),
        "/memory/review": (client, "/memory/review?instance=support-bot"),
        "/memory/duplicates": (client, "/memory/duplicates?instance=support-bot"),
        "/memory/new": (client, "/memory/new?instance=support-bot"),
        "/memory/<id>": (client, f"/memory/{memory.id}?instance=support-bot"),
        "/memory/<id>, with similar ones": (client, f"/memory/{neighbour.id}?instance=vector-bot"),
        "/memory/<id>/history": (client, f"/memory/{memory.id}/history?instance=support-bot"),
        "/memory/<id>/edit": (client, f"/memory/{memory.id}/edit?instance=support-bot"),
        "/memory/<id>/delete": (client, f"/memory/{memory.id}/delete?instance=support-bot"),
        "/activity": (client, "/activity?instance=support-bot"),
        "/conversations": (client, "/conversations?instance=support-bot"),
        "/conversations/<id>": (client, f"/conversations/{conversation.id}?instance=support-bot"),
        "/recall": (client, "/recall?instance=vector-bot"),
        "/recall, asked": (client, "/recall?instance=vector-bot&query=memory+number"),
        "/recall, asked why": (client, f"/recall?instance=vector-bot&query=memory+number&memory={neighbour.id}"),
        "/recall/log": (client, "/recall/log?instance=vector-bot"),
        "/recall/<id>": (client, f"/recall/{asked.id}?instance=vector-bot"),
        "/recall/golden": (client, "/recall/golden?instance=vector-bot"),
        "/procedures": (client, "/procedures?instance=support-bot"),
        "/procedures, tried": (client, "/procedures?instance=support-bot&match=way+number"),
        "/procedures/<id>": (client, f"/procedures/{procedure.id}?instance=support-bot"),
        "/conversations/try": (client, "/conversations/try?instance=support-bot"),
        "/memory/import": (client, "/memory/import?instance=support-bot"),
        "/audit": (client, "/audit?instance=support-bot"),
        "/forget": (client, "/forget?instance=support-bot&owner=nobody"),
        "/instances": (client, "/instances"),
        "/instances/<slug>/settings": (client, "/instances/support-bot/settings"),
        "/keys": (client, "/keys"),
        "/users": (client, "/users"),
        "GET /api/v1/memories": (caller, "/api/v1/memories?instanceId=support-bot"),
        "GET /api/v1/memories/<id>": (caller, f"/api/v1/memories/{memory.id}?instanceId=support-bot"),
        "GET /api/v1/reviews": (caller, "/api/v1/reviews?instanceId=support-bot"),
        "GET /api/v1/duplicates": (caller, "/api/v1/duplicates?instanceId=support-bot"),
        "GET /api/v1/conversations": (caller, "/api/v1/conversations?instanceId=support-bot"),
        "GET /api/v1/conversations/<id>": (caller, f"/api/v1/conversations/{conversation.id}?instanceId=support-bot"),
        "GET /api/v1/procedures": (caller, "/api/v1/procedures?instanceId=support-bot"),
        "GET /api/v1/jobs": (caller, "/api/v1/jobs?instanceId=support-bot"),
        "GET /api/v1/conversations/<id>/context": (
            caller,
            f"/api/v1/conversations/{conversation.id}/context?instanceId=support-bot",
        ),
        "GET /api/v1/audit": (caller, "/api/v1/audit?instanceId=support-bot"),
        "GET /api/v1/instances": (caller, "/api/v1/instances"),
    }


def statements(client: Client, url: str) -> int:
    assert client.get(url).status_code == 200, url
    with CaptureQueriesContext(connection) as captured:
        client.get(url)
    return len(captured)


def test_no_page_takes_more_than_the_baseline(pages: dict[str, tuple[Client, str]]) -> None:
    counts = {name: statements(*page) for name, page in pages.items()}
    if os.environ.get("UPDATE_QUERY_COUNTS"):
        BASELINE.write_text(json.dumps(counts, indent=1) + "\n")
    assert counts == json.loads(BASELINE.read_text())
