"""POST /api/v1/memories/bulk-delete"""

import uuid
from typing import Any

import pytest

from instances.models import Instance
from memories.models import Memory
from tests.api.calling import Answer, Caller
from tests.factories import make_memories, make_memory


def delete(api: Caller, **fields: Any) -> Answer:
    return api.post("/api/v1/memories/bulk-delete", {"instanceId": "support-bot", **fields})


def test_by_ids(api: Caller, support: Instance) -> None:
    first, second, third = make_memories(support, 3)
    answer = delete(api, ids=[str(first.id), str(third.id), str(first.id)])
    assert answer.status == 200
    assert answer.json == {"deleted": 2, "versions": 0, "chunks": 2, "embeddings": 0, "attachments": 0}
    assert Memory.objects.get().id == second.id


def test_by_filter(api: Caller, support: Instance, sales: Instance) -> None:
    make_memories(support, 3, category="fact", tags=["old"])
    kept = make_memory(support, "kept")
    make_memories(sales, 2, category="fact", tags=["old"])
    answer = delete(api, filter={"category": "fact", "tag": "old"}, expected=3)
    assert answer.json["deleted"] == 3
    assert Memory.objects.get(instance=support).id == kept.id
    assert Memory.objects.filter(instance=sales).count() == 2


def test_empty_filter_means_all_of_this_instance(api: Caller, support: Instance, sales: Instance) -> None:
    make_memories(support, 3)
    make_memories(sales, 2)
    assert delete(api, filter={}, expected=3).json["deleted"] == 3
    assert Memory.objects.filter(instance=sales).count() == 2


def test_nothing_matches_as_expected(api: Caller) -> None:
    assert delete(api, filter={"category": "fact"}, expected=0).json["deleted"] == 0


def test_stale_expectation_deletes_nothing(api: Caller, support: Instance) -> None:
    make_memories(support, 3)
    for expected in (0, 2, 4, 10**9, 10**30):
        answer = delete(api, filter={}, expected=expected)
        assert answer.error == (409, "stale_expectation")
        assert answer.json["matching"] == 3
    assert Memory.objects.count() == 3


ONE_WAY = {"body": ["Send ids, or filter with expected."]}
TOGETHER = {"body": ["expected goes with filter: the number of memories you saw matching."]}


@pytest.mark.parametrize(
    ("fields", "errors"),
    [
        ({"ids": []}, {"ids": ["At least 1 is needed."]}),
        ({}, ONE_WAY),
        ({"ids": None}, ONE_WAY),
        ({"expected": 3}, ONE_WAY),
        ({"filter": {}}, TOGETHER),
        ({"ids": ["x"], "filter": {}, "expected": 3}, {"ids.0": ["This is not an id."]}),
        ({"ids": [str(uuid.uuid4())], "filter": {}, "expected": 3}, ONE_WAY),
        ({"ids": [str(uuid.uuid4())], "expected": 1}, TOGETHER),
        ({"ids": "all"}, {"ids": ["Send a list."]}),
        ({"ids": ["5"]}, {"ids.0": ["This is not an id."]}),
        ({"ids": [str(uuid.uuid4()), "nonsense"]}, {"ids.1": ["This is not an id."]}),
        ({"ids": [str(uuid.uuid4())] * 1001}, {"ids": ["At most 1,000 are allowed; this has 1,001."]}),
        ({"filter": {"categry": "fact"}, "expected": 3}, {"filter.categry": ["Unknown field."]}),
        ({"filter": {"limit": 5}, "expected": 3}, {"filter.limit": ["Unknown field."]}),
        ({"filter": [], "expected": 3}, {"filter": ["Send an object."]}),
        ({"filter": {}, "expected": -1}, {"expected": ["Must be at least 0."]}),
        ({"filter": {}, "expected": True}, {"expected": ["Enter a number."]}),
        ({"filter": {"source": "\x00"}, "expected": 3}, {"filter.source": ["The NUL character is not allowed."]}),
    ],
)
def test_bad_input_deletes_nothing(
    fields: dict[str, Any], errors: dict[str, list[str]], api: Caller, support: Instance
) -> None:
    make_memories(support, 3)
    assert delete(api, **fields).errors == errors
    assert Memory.objects.count() == 3


def test_foreign_and_unknown_ids_delete_nothing(api: Caller, support: Instance, sales: Instance) -> None:
    mine, theirs = make_memory(support), make_memory(sales)
    for other in (theirs.id, uuid.uuid4()):
        answer = delete(api, ids=[str(mine.id), str(other)])
        assert answer.error == (404, "not_found")
        assert answer.json["detail"] == "1 of 2 memories are not in this instance. Nothing was deleted."
    assert Memory.objects.count() == 2


def test_deleting_twice(api: Caller, support: Instance) -> None:
    id = str(make_memory(support).id)
    assert delete(api, ids=[id]).status == 200
    assert delete(api, ids=[id]).error == (404, "not_found")


@pytest.mark.parametrize("empty", ["", None])
@pytest.mark.parametrize("name", ["owner", "source", "role", "createdBefore", "conversationId", "pinned"])
def test_an_empty_filter_does_not_mean_any(name: str, empty: str | None, api: Caller, support: Instance) -> None:
    make_memories(support, 2, category="fact", owner="ann")
    answer = delete(api, filter={"category": "fact", name: empty}, expected=2)
    assert (answer.status, list(answer.errors)) == (400, [f"filter.{name}"])
    assert Memory.objects.count() == 2


def test_a_list_of_no_tags_does_not_mean_any(api: Caller, support: Instance) -> None:
    make_memories(support, 2)
    answer = delete(api, filter={"tag": []}, expected=2)
    assert answer.errors == {"filter.tag": ["This may not be empty. Leave the filter out to mean any."]}
    assert Memory.objects.count() == 2
