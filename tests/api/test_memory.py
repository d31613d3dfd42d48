"""GET, PATCH and DELETE /api/v1/memories/{id}; who may is in test_isolation"""

import uuid
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from instances.models import Instance
from memories.models import AuditEntry, Memory, MemoryVersion
from tests.api.calling import Answer, Caller
from tests.factories import make_conversation, make_memory


def url(memory: Memory) -> str:
    return f"/api/v1/memories/{memory.id}?instanceId=support-bot"


def test_get(api: Caller, support: Instance) -> None:
    memory = make_memory(support, "Ann likes tea", key="drink", tags=["food"])
    answer = api.get(url(memory))
    assert answer.status == 200
    shown = answer.json["memory"]
    assert (shown["id"], shown["instanceId"], shown["key"]) == (str(memory.id), "support-bot", "drink")
    assert api.get("/api/v1/memories?instanceId=support-bot").json["memories"] == [shown]


def test_get_takes_no_other_parameters(api: Caller, support: Instance) -> None:
    assert list(api.get(url(make_memory(support)) + "&limit=5").errors) == ["limit"]


def test_change(api: Caller, support: Instance) -> None:
    memory = make_memory(support, "Ann likes tea", tags=["food"], importance=3)
    answer = api.patch(url(memory), {"content": "Ann likes coffee", "supersedeReason": "she said so", "pinned": True})
    assert answer.status == 200
    assert answer.json["event"] == "updated"
    shown = answer.json["memory"]
    assert (shown["content"], shown["pinned"], shown["tags"], shown["importance"]) == (
        "Ann likes coffee",
        True,
        ["food"],
        3,
    )
    assert shown["updatedAt"] > shown["createdAt"]
    assert api.get(url(memory)).json["memory"] == shown
    version = MemoryVersion.objects.get()
    assert (version.content, version.reason) == ("Ann likes tea", "she said so")


def test_change_takes_the_instance_from_the_body_too(api: Caller, support: Instance) -> None:
    memory = make_memory(support)
    answer = api.patch(f"/api/v1/memories/{memory.id}", {"instanceId": "support-bot", "importance": 9})
    assert answer.json["memory"]["importance"] == 9
    twice = api.patch(url(memory), {"instanceId": "support-bot", "importance": 8})
    assert twice.errors == {"instanceId": ["Send this once, in the query string or in the body."]}


def test_null_clears_links_and_dates(api: Caller, support: Instance) -> None:
    conversation = make_conversation(support)
    memory = make_memory(
        support, sourceConversationId=str(conversation.id), occurredAt="2026-01-01", expiresAt="2099-01-01", key="drink"
    )
    nulls = {"sourceConversationId": None, "occurredAt": None, "expiresAt": None}
    shown = api.patch(url(memory), nulls).json["memory"]
    assert {name: shown[name] for name in nulls} == nulls
    assert shown["key"] == "drink"
    assert api.patch(url(memory), {"key": ""}).json["memory"]["key"] is None


def test_null_takes_away_what_can_be_nothing(api: Caller, support: Instance) -> None:
    said = {"key": "drink", "summary": "Tea", "owner": "ann", "channel": "chat", "tags": ["vip"], "evidence": {"a": 1}}
    memory = make_memory(support, **said)
    shown = api.patch(url(memory), dict.fromkeys(said)).json["memory"]
    nothing = {"key": None, "summary": None, "owner": None, "channel": None, "tags": [], "evidence": {}}
    assert {name: shown[name] for name in said} == nothing


def test_what_was_answered_can_be_sent_back(api: Caller, support: Instance) -> None:
    memory = make_memory(support, "Ann likes tea")
    shown = api.get(url(memory)).json["memory"]
    sent = {name: shown[name] for name in ("content", "key", "summary", "supersedeReason", "expiresAt", "tags")}
    assert sent["supersedeReason"] is None
    assert api.patch(url(memory), sent).json["memory"]["content"] == "Ann likes tea"
    assert api.post("/api/v1/memories", {"instanceId": "support-bot", **sent}).status == 201


@pytest.mark.parametrize("name", ["content", "category", "role", "importance", "confidence", "pinned", "visibility"])
def test_null_is_no_value_for_the_rest(name: str, api: Caller, support: Instance) -> None:
    assert api.patch(url(make_memory(support)), {name: None}).errors == {name: ["This may not be null."]}
    described = api.get("/api/schema").json["components"]
    changes = {"$ref": "#/components/schemas/MemoryChanges", "components": described}
    assert not Draft202012Validator(changes).is_valid({name: None})


def test_a_new_text_takes_the_old_summary_away(api: Caller, support: Instance) -> None:
    memory = make_memory(support, "Ann likes tea", summary="Tea")
    assert api.patch(url(memory), {"content": "Ann likes coffee"}).json["memory"]["summary"] is None
    both = {"content": "Ann likes milk", "summary": "Milk"}
    assert api.patch(url(memory), both).json["memory"]["summary"] == "Milk"
    assert api.patch(url(memory), {"importance": 9}).json["memory"]["summary"] == "Milk"


def test_changing_nothing_leaves_no_version(api: Caller, support: Instance) -> None:
    memory = make_memory(support, "Ann likes tea")
    before = api.get(url(memory)).json["memory"]
    assert api.patch(url(memory), {}).json["memory"] == before
    assert api.patch(url(memory), {"content": "Ann likes tea"}).json["memory"] == before
    assert not MemoryVersion.objects.exists()


def test_change_redacts_credentials(api: Caller, support: Instance) -> None:
    answer = api.patch(url(make_memory(support)), {"content": "AKIAABCDEFGHIJKLMNOP"})
    assert answer.json["redacted"] == ["AWS key"]
    assert answer.json["memory"]["content"] == "[redacted AWS key]"


def test_change_redacts_credentials_in_its_reason(api: Caller, support: Instance) -> None:
    given = {"content": "Ann has a new key", "supersedeReason": "AKIAABCDEFGHIJKLMNOP was revoked"}
    assert api.patch(url(make_memory(support)), given).json["redacted"] == ["AWS key"]
    assert MemoryVersion.objects.get().reason == "[redacted AWS key] was revoked"


def test_change_to_a_taken_key(api: Caller, support: Instance) -> None:
    make_memory(support, key="drink")
    memory = make_memory(support, "Ann likes tea", key="food")
    assert api.patch(url(memory), {"key": "drink", "content": "x"}).error == (409, "key_taken")
    memory.refresh_from_db()
    assert (memory.key, memory.content) == ("food", "Ann likes tea")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"content": ""}, "content"),
        ({"content": " "}, "content"),
        ({"content": "a\x00b"}, "content"),
        ({"content": "x" * 1_000_000}, "content"),
        ({"category": "food"}, "category"),
        ({"importance": 0}, "importance"),
        ({"importance": 11}, "importance"),
        ({"importance": "high"}, "importance"),
        ({"importance": 3.5}, "importance"),
        ({"sourceConversationId": str(uuid.uuid4())}, "sourceConversationId"),
        ({"sourceMessageIds": [str(uuid.uuid4())]}, "sourceMessageIds"),
        ({"expiresAt": "2020-01-01T00:00:00Z"}, "expiresAt"),
        ({"visibility": "private"}, "owner"),
        ({"evidence": {"a": "\x00"}}, "evidence"),
        ({"status": "superseded"}, "status"),
        ({"dedupe": "create"}, "dedupe"),
        ({"pinned": True, "importance": 99}, "importance"),
    ],
)
def test_bad_changes_change_nothing(changes: dict[str, Any], field: str, api: Caller, support: Instance) -> None:
    memory = make_memory(support, "Ann likes tea")
    before = api.get(url(memory)).json
    assert list(api.patch(url(memory), changes).errors) == [field]
    assert api.get(url(memory)).json == before
    assert not MemoryVersion.objects.exists()


def test_change_to_a_conversation_of_another_instance(api: Caller, support: Instance, sales: Instance) -> None:
    memory, theirs = make_memory(support), make_conversation(sales)
    answer = api.patch(url(memory), {"sourceConversationId": str(theirs.id)})
    assert list(answer.errors) == ["sourceConversationId"]


def test_delete_answers_with_a_receipt(api: Caller, support: Instance) -> None:
    memory, other = make_memory(support, "Ann likes tea"), make_memory(support, "Ann lives in Bern")
    api.patch(url(memory), {"content": "Ann likes coffee"})
    answer = api.delete(url(memory))
    assert answer.status == 200
    assert answer.json == {"deleted": 1, "versions": 1, "chunks": 2, "embeddings": 0, "attachments": 0}
    assert list(Memory.objects.values_list("id", flat=True)) == [other.id]
    assert not MemoryVersion.objects.exists()
    assert api.get("/api/v1/memories?instanceId=support-bot").json["total"] == 1
    entry = AuditEntry.objects.get(action="deleted")
    assert entry.memory_ids == [memory.id]


def test_deleting_twice(api: Caller, support: Instance) -> None:
    memory = make_memory(support)
    assert api.delete(url(memory)).status == 200

    def gone(answer: Answer) -> bool:
        return answer.error == (404, "not_found")

    assert gone(api.delete(url(memory)))
    assert gone(api.get(url(memory)))
    assert gone(api.patch(url(memory), {"pinned": True}))
    assert AuditEntry.objects.filter(action="deleted").count() == 1
