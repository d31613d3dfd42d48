"""Cursors of all lists: valid for their own list with any limit, and for no other."""

import pytest

from instances.models import Instance
from memories.embedding.backfill import ask_for_embedding
from memories.recall.recalling import RecallRequest, recall
from tests.api.calling import Caller
from tests.factories import make_conversation, make_key, make_memory, make_pair, make_waiting, scope_of

# Each list, a filter that matches everything, and filters that make it another list.
LISTS = {
    "memories": ("tag=a&tag=b", ["", "tag=a", "tag=a&tag=b&pinned=false", "tag=a&tag=b&createdAfter=2020-01-01"]),
    "recalls": ("userId=ann", ["", "userId=bob"]),
    "reviews": ("why=importance", ["", "why=conflict"]),
    "duplicates": ("kind=duplicate", ["", "kind=conflict"]),
    "conversations": ("channel=chat", ["", "channel=mail", "channel=chat&userId=ann"]),
    "jobs": ("state=queued", ["", "state=failed", "state=queued&kind=embed-memories"]),
    "audit": ("actor=shell+server", ["", "actor=shell+server&action=created", "actor=user+ann"]),
}


def fill(instance: Instance) -> None:
    """Three rows in each list."""
    scope = scope_of(instance)
    for n in range(3):
        memory = make_memory(instance, f"Ann likes tea number {n}", tags=["a", "b"])
        make_pair(memory, make_memory(instance, f"Ann likes tea number {n} very much", tags=["a", "b"]))
        make_waiting(instance, f"Perhaps number {n}")
        make_conversation(instance, channel="chat")
        recall(scope, RecallRequest(query="tea", user_id="ann"))
        ask_for_embedding(scope)


@pytest.fixture
def api(support: Instance, sales: Instance) -> Caller:
    fill(support)
    fill(sales)
    return Caller(make_key())


def url(name: str, query: str, instance: str = "support-bot", **paging: object) -> str:
    given = "".join(f"&{option}={value}" for option, value in paging.items())
    return f"/api/v1/{name}?instanceId={instance}&{query}{given}"


@pytest.mark.parametrize("name", LISTS)
def test_a_cursor_is_good_with_another_limit(name: str, api: Caller) -> None:
    filters, _ = LISTS[name]
    rows = "entries" if name == "audit" else name
    everything = api.get(url(name, filters, limit=100)).json[rows]
    first = api.get(url(name, filters, limit=1)).json
    rest = api.get(url(name, filters, limit=100, cursor=first["nextCursor"])).json
    assert first[rows] + rest[rows] == everything
    assert len(everything) >= 3


@pytest.mark.parametrize("name", LISTS)
def test_a_cursor_is_refused_under_other_filters(name: str, api: Caller) -> None:
    filters, others = LISTS[name]
    cursor = api.get(url(name, filters, limit=1)).json["nextCursor"]
    for other in others:
        assert list(api.get(url(name, other, cursor=cursor)).errors) == ["cursor"], other


@pytest.mark.parametrize("name", LISTS)
def test_a_cursor_is_refused_in_another_instance(name: str, api: Caller) -> None:
    filters, _ = LISTS[name]
    cursor = api.get(url(name, filters, limit=1)).json["nextCursor"]
    assert list(api.get(url(name, filters, "sales-bot", cursor=cursor)).errors) == ["cursor"]


def test_the_same_filters_written_otherwise_are_the_same(api: Caller) -> None:
    cursor = api.get(url("memories", "tag=a&tag=b&createdAfter=2020-01-01", limit=1)).json["nextCursor"]
    same = "createdAfter=2020-01-01T01:00:00%2B01:00&tag=b&tag=a"
    assert api.get(url("memories", same, cursor=cursor)).status == 200


def test_a_cursor_of_one_conversation_is_refused_in_another(api: Caller, support: Instance) -> None:
    first, second = (make_conversation(support, "Hello", "Good morning", "Bye") for _ in range(2))
    cursor = api.get(url(f"conversations/{first.id}", "limit=1")).json["nextCursor"]
    assert len(api.get(url(f"conversations/{first.id}", f"cursor={cursor}")).json["messages"]) == 2
    assert list(api.get(url(f"conversations/{second.id}", f"cursor={cursor}")).errors) == ["cursor"]
