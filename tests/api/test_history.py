"""GET /api/v1/memories/{id}/history and POST /api/v1/memories/{id}/restore"""

from typing import Any

import pytest

from instances.models import Instance
from memories.models import Memory
from tests.api.calling import Answer, Caller
from tests.factories import make_key, make_memory


def change(api: Caller, memory: Memory, **changes: Any) -> None:
    assert api.patch(f"/api/v1/memories/{memory.id}?instanceId=support-bot", changes).status == 200


def history(api: Caller, memory: Memory, query: str = "") -> Answer:
    return api.get(f"/api/v1/memories/{memory.id}/history?instanceId=support-bot{query}")


def restore(api: Caller, memory: Memory, **body: Any) -> Answer:
    return api.post(f"/api/v1/memories/{memory.id}/restore", {"instanceId": "support-bot", **body})


@pytest.fixture
def memory(support: Instance) -> Memory:
    return make_memory(support, "Tea", summary="drink", category="preference", importance=3, tags=["food"])


def test_history_is_newest_first(api: Caller, memory: Memory) -> None:
    change(api, memory, content="Coffee", supersedeReason="she said so")
    change(api, memory, content="Water", category="fact")
    answer = history(api, memory)
    assert (answer.json["total"], answer.json["limit"], answer.json["offset"]) == (2, 20, 0)
    newest, oldest = answer.json["versions"]
    assert (newest["version"], newest["content"], newest["reason"]) == (2, "Coffee", None)
    for name in ("writtenAt", "replacedAt"):
        assert oldest.pop(name).endswith("Z")
    assert oldest.pop("actor").startswith("key ")
    assert oldest == {
        "version": 1,
        "key": None,
        "content": "Tea",
        "summary": "drink",
        "category": "preference",
        "role": "context",
        "importance": 3,
        "confidence": 1.0,
        "evidence": {},
        "tags": ["food"],
        "reason": "she said so",
        "similarity": None,
        "sourceMessageId": None,
    }


def test_a_restore_of_nothing_but_tags_can_be_undone(api: Caller, memory: Memory) -> None:
    change(api, memory, importance=4)
    change(api, memory, importance=3)
    change(api, memory, tags=["drink"])
    assert restore(api, memory, version=1).json["memory"]["tags"] == ["food"]
    assert [version["version"] for version in history(api, memory).json["versions"]] == [3, 2, 1]
    assert restore(api, memory, version=3).json["memory"]["tags"] == ["drink"]


def test_history_of_an_unchanged_memory_is_empty(api: Caller, memory: Memory) -> None:
    change(api, memory, pinned=True)
    assert history(api, memory).json["versions"] == []


def test_history_in_parts(api: Caller, memory: Memory) -> None:
    for number in range(5):
        change(api, memory, content=f"Drink {number}")
    part = history(api, memory, "&limit=2&offset=1").json
    assert part["total"] == 5
    assert [version["version"] for version in part["versions"]] == [4, 3]
    for query in ("limit=0", "limit=101", "offset=-1", "offset=10001", "cursor=x"):
        assert list(history(api, memory, f"&{query}").errors) == [query.split("=")[0]]


def test_restore(api: Caller, memory: Memory) -> None:
    change(api, memory, content="Coffee", summary="", category="fact", importance=9, tags=[], pinned=True)
    answer = restore(api, memory, version=1)
    assert answer.status == 200
    shown = answer.json["memory"]
    assert (shown["content"], shown["summary"], shown["category"]) == ("Tea", "drink", "preference")
    assert (shown["importance"], shown["tags"], shown["pinned"]) == (3, ["food"], True)
    versions = history(api, memory).json["versions"]
    assert [(version["version"], version["content"]) for version in versions] == [(2, "Coffee"), (1, "Tea")]
    assert versions[0]["reason"] == "restored version 1"


def test_restore_can_be_undone(api: Caller, memory: Memory) -> None:
    change(api, memory, content="Coffee")
    restore(api, memory, version=1)
    assert restore(api, memory, version=2).json["memory"]["content"] == "Coffee"


def test_restore_of_what_it_says_already_changes_nothing(api: Caller, memory: Memory) -> None:
    change(api, memory, content="Coffee")
    change(api, memory, content="Tea", summary="drink")
    restore(api, memory, version=1)
    assert history(api, memory).json["total"] == 2


def test_restore_of_no_version(api: Caller, memory: Memory) -> None:
    answer = restore(api, memory, version=1)
    assert answer.error == (404, "not_found")
    assert answer.json["detail"] == "This memory has no version 1."


@pytest.mark.parametrize("version", [None, 0, -1, 1.5, "first", True, 2**31, 10**30, [1]])
def test_restore_of_a_bad_version(version: Any, api: Caller, memory: Memory) -> None:
    change(api, memory, content="Coffee")
    assert list(restore(api, memory, version=version).errors) == ["version"]
    assert list(restore(api, memory).errors) == ["version"]
    memory.refresh_from_db()
    assert memory.content == "Coffee"


def test_restored_text_is_embedded_again(api: Caller, memory: Memory) -> None:
    change(api, memory, content="Coffee")
    Memory.objects.filter(id=memory.id).update(embedding="ready")
    assert restore(api, memory, version=1).json["memory"]["embedding"] == "pending"


@pytest.fixture
def superseded(support: Instance) -> Memory:
    old = make_memory(support, "Ann likes tea", key="drink")
    new = make_memory(support, "Ann likes coffee", key="drink", dedupe="create", supersedeReason="she changed her mind")
    Memory.objects.filter(pk=new.pk).update(key="")
    return old


def test_a_superseded_memory_is_used_again(api: Caller, superseded: Memory) -> None:
    shown = restore(api, superseded).json["memory"]
    assert (shown["status"], shown["supersededById"], shown["supersedeReason"]) == ("active", None, None)
    assert shown["content"] == "Ann likes tea"
    listed = api.get("/api/v1/memories?instanceId=support-bot&search=tea").json["memories"]
    assert [memory["id"] for memory in listed] == [str(superseded.id)]
    assert restore(api, superseded).error == (400, "invalid")


def test_its_version_brings_it_back_into_use(api: Caller, superseded: Memory) -> None:
    change(api, superseded, content="Ann likes milk")
    shown = restore(api, superseded, version=1).json["memory"]
    assert (shown["status"], shown["content"]) == ("active", "Ann likes tea")


def test_its_key_may_be_taken(api: Caller, support: Instance, superseded: Memory) -> None:
    holder = make_memory(support, "Ann likes water", key="drink")
    shown = restore(api, superseded).json["memory"]
    assert (shown["status"], shown["key"]) == ("active", None)
    holder.refresh_from_db()
    assert (holder.status, holder.key) == ("active", "drink")


def test_who_may_not_use_it_again(superseded: Memory, support: Instance, sales: Instance) -> None:
    body = {"instanceId": "support-bot"}
    address = f"/api/v1/memories/{superseded.id}/restore"
    reader, stranger = Caller(make_key(support, read_only=True)), Caller(make_key(sales))
    assert reader.post(address, body).error == (403, "read_only")
    assert stranger.post(address, body).error == (404, "not_found")
    assert stranger.post(address, {"instanceId": "sales-bot"}).error == (404, "not_found")
    superseded.refresh_from_db()
    assert superseded.status == "superseded"
