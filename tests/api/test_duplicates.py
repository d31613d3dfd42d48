"""GET /api/v1/duplicates and POST /api/v1/duplicates/{id}"""

from typing import Any

import pytest

from instances.models import Instance
from memories.models import DuplicatePair, Memory
from memoryconsole.ids import uuid7
from tests.api.calling import Answer, Caller, signed_in
from tests.factories import make_key, make_memory, make_pair, make_user


def look(api: Caller, query: str = "") -> Answer:
    return api.get(f"/api/v1/duplicates?instanceId=support-bot{query}")


def decide(api: Caller, pair: DuplicatePair, **body: Any) -> Answer:
    return api.post(f"/api/v1/duplicates/{pair.id}", {"instanceId": "support-bot", **body})


@pytest.fixture
def pair(support: Instance) -> DuplicatePair:
    return make_pair(make_memory(support, "Ann likes tea"), make_memory(support, "Ann likes tea a lot"), cosine=0.93)


def test_nearest_first(api: Caller, support: Instance, pair: DuplicatePair) -> None:
    nearer = make_pair(make_memory(support, "A 1"), make_memory(support, "A 2"), "conflict", cosine=0.97)
    answer = look(api).json
    assert (answer["total"], answer["limit"], answer["offset"], answer["nextCursor"]) == (2, 20, 0, None)
    first, second = answer["duplicates"]
    assert (first["id"], first["kind"], first["similarity"]) == (str(nearer.id), "conflict", 0.97)
    assert (second["older"]["content"], second["newer"]["content"]) == ("Ann likes tea", "Ann likes tea a lot")
    assert [each["id"] for each in look(api, "&kind=duplicate").json["duplicates"]] == [str(pair.id)]
    part = look(api, "&limit=1").json
    following = look(api, f"&limit=1&cursor={part['nextCursor']}").json
    assert ([each["id"] for each in following["duplicates"]], following["nextCursor"]) == ([str(pair.id)], None)
    for query in ("limit=0", "cursor=x", "kind=twin", "search=x"):
        assert list(look(api, f"&{query}").errors) == [query.split("=")[0]]


def test_merge(api: Caller, pair: DuplicatePair) -> None:
    answer = decide(api, pair, action="merge", content="Ann loves tea")
    assert answer.json["event"] == "merged"
    assert (answer.json["memory"]["id"], answer.json["memory"]["content"]) == (str(pair.first_id), "Ann loves tea")
    newer = api.get(f"/api/v1/memories/{pair.second_id}?instanceId=support-bot").json["memory"]
    assert (newer["status"], newer["supersededById"]) == ("superseded", str(pair.first_id))
    assert decide(api, pair, action="merge").error == (404, "not_found")


def test_merge_without_a_text_keeps_the_older_one(api: Caller, pair: DuplicatePair) -> None:
    assert decide(api, pair, action="merge").json["memory"]["content"] == "Ann likes tea"


def test_keep(api: Caller, pair: DuplicatePair) -> None:
    assert decide(api, pair, action="keep").json["event"] == "kept"
    assert look(api).json["total"] == 0
    assert Memory.objects.filter(listed=True).count() == 2


def test_the_job_that_finds_them(api: Caller, pair: DuplicatePair) -> None:
    body = {"instanceId": "support-bot", "kind": "find-duplicates", "payload": {"threshold": 0.8}}
    answer = api.post("/api/v1/jobs", body)
    assert (answer.status, answer.json["job"]["kind"], answer.json["job"]["payload"]) == (
        202, "find-duplicates", {"threshold": 0.8},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "action"),
        ({"action": "delete"}, "action"),
        ({"action": "merge", "content": " "}, "content"),
        ({"action": "keep", "content": "x"}, "content"),
        ({"action": "keep", "x": 1}, "x"),
    ],
)
def test_bad_input(api: Caller, pair: DuplicatePair, body: dict[str, Any], field: str) -> None:
    assert list(decide(api, pair, **body).errors) == [field]
    assert DuplicatePair.objects.get().state == "open"


def test_who_may_only_read(support: Instance, pair: DuplicatePair) -> None:
    reader = Caller(make_key(support, read_only=True))
    assert look(reader).json["total"] == 1
    for action in ("merge", "keep"):
        assert decide(reader, pair, action=action).error == (403, "read_only")


def test_strangers(api: Caller, support: Instance, sales: Instance, pair: DuplicatePair) -> None:
    stranger = Caller(make_key(sales))
    assert look(stranger).error == (404, "not_found")
    assert decide(stranger, pair, action="merge").error == (404, "not_found")
    assert decide(stranger, pair, action="merge", instanceId="sales-bot").error == (404, "not_found")
    for id in (uuid7(), "nonsense"):
        body = {"instanceId": "support-bot", "action": "keep"}
        assert api.post(f"/api/v1/duplicates/{id}", body).error == (404, "not_found")
    hers = make_pair(*(make_memory(support, "Secret", owner="ann", visibility="private") for _ in range(2)))
    bob = signed_in(make_user("bob", support))
    assert look(bob).json["total"] == 1
    assert decide(bob, hers, action="merge").error == (404, "not_found")
