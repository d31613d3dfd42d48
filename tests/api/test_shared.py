"""Memories another instance shares, through the API."""

import pytest

from instances.models import Instance
from tests.api.calling import Caller
from tests.factories import make_key, make_memory


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
