"""GET and POST /api/v1/reviews, POST /api/v1/memories/{id}/review"""

from typing import Any

import pytest

from instances.models import Instance
from memories.models import Memory, MemoryVersion
from memoryconsole.ids import uuid7
from tests.api.calling import Answer, Caller, signed_in
from tests.factories import make_key, make_memory, make_user, make_waiting


def look(api: Caller, query: str = "") -> Answer:
    return api.get(f"/api/v1/reviews?instanceId=support-bot{query}")


def decide(api: Caller, memory: Memory, **body: Any) -> Answer:
    return api.post(f"/api/v1/memories/{memory.id}/review", {"instanceId": "support-bot", **body})


@pytest.fixture
def known(support: Instance) -> Memory:
    return make_memory(support, "The demo is on Monday")


@pytest.fixture
def waiting(support: Instance, known: Memory) -> Memory:
    return make_waiting(support, "The demo is on Tuesday", known)


def test_what_waits(api: Caller, support: Instance, known: Memory, waiting: Memory) -> None:
    trivial = make_waiting(support, "It rained")
    answer = look(api).json
    assert (answer["total"], answer["limit"], answer["offset"], answer["nextCursor"]) == (2, 20, 0, None)
    first, second = answer["reviews"]
    assert (first["memory"]["id"], first["conflictsWith"], first["similarity"]) == (str(trivial.id), None, None)
    assert (second["memory"]["id"], second["conflictsWith"]["id"]) == (str(waiting.id), str(known.id))
    assert second["reason"] == "It may contradict another memory: they differ in names."
    assert [each["memory"]["content"] for each in look(api, "&why=conflict").json["reviews"]] == [waiting.content]
    assert [each["memory"]["content"] for each in look(api, "&why=importance").json["reviews"]] == ["It rained"]
    assert api.get("/api/v1/memories?instanceId=support-bot").json["total"] == 1


def test_in_parts(api: Caller, support: Instance) -> None:
    for n in range(5):
        make_waiting(support, f"Fact {n}")
    first = look(api, "&limit=2").json
    second = look(api, f"&limit=2&cursor={first['nextCursor']}").json
    third = look(api, f"&limit=2&cursor={second['nextCursor']}").json
    found = [each["memory"]["content"] for part in (first, second, third) for each in part["reviews"]]
    assert found == [f"Fact {n}" for n in (4, 3, 2, 1, 0)]
    assert third["nextCursor"] is None
    for query in ("limit=0", "offset=-1", "cursor=x", "why=boredom", "search=tea"):
        assert list(look(api, f"&{query}").errors) == [query.split("=")[0]]


def test_approve(api: Caller, waiting: Memory) -> None:
    answer = decide(api, waiting, action="approve")
    assert (answer.status, answer.json["event"], answer.json["memory"]["id"]) == (200, "approved", str(waiting.id))
    assert api.get("/api/v1/memories?instanceId=support-bot").json["total"] == 2
    assert decide(api, waiting, action="approve").error == (409, "reviewed")


def test_approve_corrected(api: Caller, waiting: Memory) -> None:
    answer = decide(api, waiting, action="approve", content="The demo is on Friday", category="event", importance=9)
    shown = answer.json["memory"]
    assert (shown["content"], shown["category"], shown["importance"]) == ("The demo is on Friday", "event", 9)
    assert MemoryVersion.objects.get().reason == "corrected in review"


@pytest.mark.parametrize("action", ["approve", "keep", "merge", "reject"])
def test_null_is_nothing(api: Caller, waiting: Memory, action: str) -> None:
    assert decide(api, waiting, action=action, content=None, category=None, importance=None).status == 200


def test_keep(api: Caller, support: Instance, waiting: Memory) -> None:
    assert decide(api, waiting, action="keep").json["event"] == "kept"
    assert decide(api, make_waiting(support, "Alone"), action="keep").error == (409, "no_conflict")


def test_merge(api: Caller, support: Instance, known: Memory, waiting: Memory) -> None:
    answer = decide(api, waiting, action="merge", content="The demo moved to Tuesday")
    assert (answer.json["event"], answer.json["memory"]["id"]) == ("merged", str(known.id))
    assert list(Memory.objects.values_list("content", flat=True)) == ["The demo moved to Tuesday"]
    assert decide(api, waiting, action="merge").error == (404, "not_found")
    assert decide(api, make_waiting(support, "Alone"), action="merge").error == (409, "no_conflict")


def test_reject(api: Caller, waiting: Memory) -> None:
    answer = decide(api, waiting, action="reject")
    assert answer.json == {
        "event": "rejected",
        "receipt": {"deleted": 1, "versions": 0, "chunks": 1, "embeddings": 0, "attachments": 0},
    }
    assert Memory.objects.count() == 1


def test_what_is_not_waiting_is_not_rejected(api: Caller, known: Memory) -> None:
    assert decide(api, known, action="reject").error == (409, "reviewed")
    assert Memory.objects.count() == 1


def test_many(api: Caller, support: Instance, known: Memory) -> None:
    ids = [str(make_waiting(support, f"Fact {n}").id) for n in range(4)]
    body = {"instanceId": "support-bot", "action": "approve", "ids": [*ids[:2], str(known.id), str(uuid7())]}
    assert api.post("/api/v1/reviews", body).json == {"approved": 2}
    rejected = api.post("/api/v1/reviews", {**body, "action": "reject", "ids": ids}).json["receipt"]
    assert rejected["deleted"] == 2
    assert Memory.objects.count() == 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "action"),
        ({"action": "like"}, "action"),
        ({"action": "approve", "importance": 11}, "importance"),
        ({"action": "approve", "content": " "}, "content"),
        ({"action": "merge", "content": ""}, "content"),
        ({"action": "merge", "importance": 3}, "body"),
        ({"action": "reject", "content": "x"}, "body"),
        ({"action": "keep", "why": "x"}, "why"),
    ],
)
def test_bad_input(api: Caller, waiting: Memory, body: dict[str, Any], field: str) -> None:
    assert list(decide(api, waiting, **body).errors) == [field]
    assert Memory.objects.get(id=waiting.id).review == "pending"


@pytest.mark.parametrize("ids", [None, [], ["x"], "all", [1]])
def test_bad_input_for_many(api: Caller, waiting: Memory, ids: Any) -> None:
    answer = api.post("/api/v1/reviews", {"instanceId": "support-bot", "action": "reject", "ids": ids})
    assert {name.split(".")[0] for name in answer.errors} == {"ids"}
    assert Memory.objects.count() == 2


def test_an_id_that_is_none_is_named(api: Caller, waiting: Memory) -> None:
    body = {"instanceId": "support-bot", "action": "reject", "ids": [str(waiting.id), "nonsense"]}
    assert api.post("/api/v1/reviews", body).errors == {"ids.1": ["This is not an id."]}
    assert Memory.objects.filter(id=waiting.id).exists()


def test_who_may_only_read(support: Instance, waiting: Memory) -> None:
    reader = Caller(make_key(support, read_only=True))
    assert look(reader).json["total"] == 1
    for action in ("approve", "keep", "merge", "reject"):
        assert decide(reader, waiting, action=action).error == (403, "read_only")
    body = {"instanceId": "support-bot", "action": "reject", "ids": [str(waiting.id)]}
    assert reader.post("/api/v1/reviews", body).error == (403, "read_only")
    assert Memory.objects.get(id=waiting.id).review == "pending"


def test_strangers(support: Instance, sales: Instance, waiting: Memory) -> None:
    stranger = Caller(make_key(sales))
    assert look(stranger).error == (404, "not_found")
    assert decide(stranger, waiting, action="reject").error == (404, "not_found")
    url = f"/api/v1/memories/{waiting.id}/review"
    assert stranger.post(url, {"instanceId": "sales-bot", "action": "reject"}).error == (404, "not_found")
    body = {"instanceId": "sales-bot", "action": "reject", "ids": [str(waiting.id)]}
    assert stranger.post("/api/v1/reviews", body).json["receipt"]["deleted"] == 0
    assert Memory.objects.filter(id=waiting.id).exists()


def test_private_memories_of_others(support: Instance) -> None:
    hers = make_waiting(support, "A secret", visibility="private", owner="ann")
    bob = signed_in(make_user("bob", support))
    assert look(bob).json["total"] == 0
    assert decide(bob, hers, action="approve").error == (404, "not_found")
