"""GET /api/v1/audit"""

from datetime import timedelta

import pytest
from django.utils import timezone

from instances.models import Instance
from memories.models import AuditEntry
from memoryconsole.ids import uuid7_at
from tests.api.calling import Caller
from tests.factories import make_memories, make_memory

URL = "/api/v1/audit?instanceId=support-bot"


def test_who_did_what_to_which_memory(api: Caller, support: Instance) -> None:
    id = api.post("/api/v1/memories", {"instanceId": "support-bot", "content": "Tea"}).json["memory"]["id"]
    api.patch(f"/api/v1/memories/{id}?instanceId=support-bot", {"content": "Coffee", "pinned": True, "importance": 5})
    api.delete(f"/api/v1/memories/{id}?instanceId=support-bot")
    answer = api.get(URL)
    assert answer.status == 200
    assert (answer.json["limit"], answer.json["nextCursor"]) == (20, None)
    deleted, changed, created = answer.json["entries"]
    assert [entry["action"] for entry in (created, changed, deleted)] == ["created", "changed", "deleted"]
    assert {entry["actor"].split()[0] for entry in answer.json["entries"]} == {"key"}
    assert changed["memoryIds"] == [id]
    assert changed["memories"] == 1
    assert changed["detail"] == {"fields": ["content", "pinned"]}
    assert "Tea" not in str(answer.json)
    assert "Coffee" not in str(answer.json)


def test_filters(api: Caller, support: Instance, sales: Instance) -> None:
    first, second = make_memory(support), make_memory(support)
    make_memory(sales)
    api.delete(f"/api/v1/memories/{first.id}?instanceId=support-bot")
    entries = api.get(URL).json["entries"]
    assert [entry["action"] for entry in entries] == ["deleted", "created", "created"]

    def found(query: str) -> list[str]:
        return [entry["id"] for entry in api.get(f"{URL}&{query}").json["entries"]]

    ids = [entry["id"] for entry in entries]
    assert found("action=deleted") == ids[:1]
    assert found("actor=shell+server") == ids[1:]
    assert found(f"memoryId={first.id}") == [ids[0], ids[2]]
    assert found(f"memoryId={second.id}&action=deleted") == []
    assert found(f"createdAfter={entries[1]['createdAt']}")[:2] == ids[:2]
    assert ids[1] not in found(f"createdBefore={entries[1]['createdAt']}")
    old = uuid7_at(timezone.now() - timedelta(days=2))
    AuditEntry.objects.filter(instance=support, id=ids[2]).update(id=old)
    day_ago = (timezone.now() - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert found(f"createdAfter={day_ago}") == ids[:2]
    assert found(f"createdBefore={day_ago}") == [str(old)]


def test_pages_by_cursor(api: Caller, support: Instance) -> None:
    for _ in range(5):
        make_memory(support)
    seen, cursor = [], ""
    while cursor is not None:
        answer = api.get(f"{URL}&limit=2&cursor={cursor}").json
        seen += [entry["id"] for entry in answer["entries"]]
        cursor = answer["nextCursor"]
    assert seen == [entry["id"] for entry in api.get(URL).json["entries"]]
    assert len(set(seen)) == 5


def test_a_cursor_of_another_list_is_refused(api: Caller, support: Instance) -> None:
    make_memories(support, 2)
    cursor = api.get("/api/v1/memories?instanceId=support-bot&limit=1").json["nextCursor"]
    assert "cursor" in api.get(f"{URL}&cursor={cursor}").errors


def test_long_lists_of_ids_are_cut(api: Caller, support: Instance) -> None:
    make_memories(support, 1002)
    (entry,) = api.get(URL).json["entries"]
    assert (entry["memories"], len(entry["memoryIds"])) == (1002, 1000)


@pytest.mark.parametrize("name", ["actor", "action", "memoryId", "createdAfter", "createdBefore"])
def test_an_empty_filter_does_not_mean_any(name: str, api: Caller) -> None:
    assert api.get(f"{URL}&{name}=").errors == {name: ["This may not be empty. Leave the filter out to mean any."]}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("memoryId=5", "memoryId"),
        ("createdAfter=yesterday", "createdAfter"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("cursor=x", "cursor"),
        (f"action={'x' * 41}", "action"),
        ("offset=5", "offset"),
    ],
)
def test_bad_input(api: Caller, query: str, field: str) -> None:
    assert list(api.get(f"{URL}&{query}").errors) == [field]
