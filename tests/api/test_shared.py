"""Memories another instance shares, through the API."""

import pytest

from instances.models import Instance
from memories.draft import MemoryChanges
from memories.store import change
from tests.api.calling import Caller
from tests.factories import make_key, make_memory, scope_of


@pytest.fixture
def caller(sales: Instance) -> Caller:
    return Caller(make_key(sales, read_team=True))


def test_search_names_the_instance_it_comes_from(caller: Caller, sales: Instance, support: Instance) -> None:
    memory = make_memory(support, "Refunds take thirty days", visibility="team")
    make_memory(support, "Refunds are a secret of ours")
    answer = caller.get("/api/v1/memories?instanceId=sales-bot&search=refunds&explain=true").json
    (hit,) = answer["memories"]
    assert (hit["id"], hit["instanceId"], hit["sharedFrom"]) == (str(memory.id), "support-bot", "support-bot")
    assert hit["explain"]["boosts"] == {"shared": hit["explain"]["final"]}
    assert answer["total"] == 1


def test_it_is_read_by_id_but_not_changed(caller: Caller, support: Instance) -> None:
    memory = make_memory(support, "Refunds take thirty days", visibility="team")
    url = f"/api/v1/memories/{memory.id}?instanceId=sales-bot"
    found = caller.get(url).json["memory"]
    assert (found["content"], found["instanceId"]) == ("Refunds take thirty days", "support-bot")
    assert caller.patch(url, {"content": "x"}).error == (404, "not_found")
    assert caller.delete(url).error == (404, "not_found")
    assert caller.get(f"/api/v1/memories/{memory.id}/history?instanceId=sales-bot").error == (404, "not_found")


def test_lists_hold_only_what_is_the_instances_own(caller: Caller, support: Instance) -> None:
    make_memory(support, "Refunds take thirty days", visibility="org")
    assert caller.get("/api/v1/memories?instanceId=sales-bot").json["total"] == 0


def test_a_key_without_the_grant_finds_nothing(sales: Instance, support: Instance) -> None:
    memory = make_memory(support, "Refunds take thirty days", visibility="org")
    caller = Caller(make_key(sales))
    assert caller.get("/api/v1/memories?instanceId=sales-bot&search=refunds").json["memories"] == []
    assert caller.get(f"/api/v1/memories/{memory.id}?instanceId=sales-bot").error == (404, "not_found")


def test_it_is_recalled_and_explained(caller: Caller, support: Instance) -> None:
    memory = make_memory(support, "Refunds take thirty days", visibility="team", key="refunds")
    make_memory(support, "Refunds are a secret of ours")
    answer = caller.post("/api/v1/recall", {"instanceId": "sales-bot", "query": "How long do refunds take?"}).json
    assert answer["context"].splitlines()[1:-1] == ["[CONTEXT] [refunds from support-bot]: Refunds take thirty days"]
    (given,) = answer["memories"]
    assert (given["id"], given["instanceId"], given["sharedFrom"]) == (str(memory.id), "support-bot", "support-bot")
    url = f"/api/v1/recalls/{answer['recallId']}"
    logged = caller.get(f"{url}?instanceId=sales-bot").json["recall"]
    assert (logged["context"], logged["complete"]) == (answer["context"], True)
    why = caller.get(f"{url}/why?instanceId=sales-bot&memoryId={memory.id}").json["why"]
    assert (why["cause"], why["memory"]["instanceId"]) == ("found", "support-bot")


def test_what_is_not_shared_any_more_is_not_shown_in_the_log(caller: Caller, support: Instance) -> None:
    memory = make_memory(support, "Refunds take thirty days", visibility="team")
    answer = caller.post("/api/v1/recall", {"instanceId": "sales-bot", "query": "refunds"}).json
    change(scope_of(support), memory.id, MemoryChanges(visibility="instance"))
    url = f"/api/v1/recalls/{answer['recallId']}"
    logged = caller.get(f"{url}?instanceId=sales-bot").json["recall"]
    assert "thirty days" not in str(logged)
    assert caller.get(f"{url}/why?instanceId=sales-bot&memoryId={memory.id}").error == (404, "not_found")


def test_what_has_changed_since_is_not_shown_in_the_log_as_what_was_said(caller: Caller, support: Instance) -> None:
    memory = make_memory(support, "Refunds take thirty days", visibility="team")
    answer = caller.post("/api/v1/recall", {"instanceId": "sales-bot", "query": "refunds"}).json
    change(scope_of(support), memory.id, MemoryChanges(content="Refunds take forty days"))
    logged = caller.get(f"/api/v1/recalls/{answer['recallId']}?instanceId=sales-bot").json["recall"]
    assert (logged["context"], logged["complete"]) == ("<memory-context>\n</memory-context>", False)
    (shown,) = logged["memories"]
    assert (shown["line"], shown["changed"], shown["memory"]["content"]) == (None, True, "Refunds take forty days")
    assert "thirty days" not in str(logged)
