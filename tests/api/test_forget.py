"""GET and POST /api/v1/forget"""

import pytest

from instances.models import Instance
from memories.models import AuditEntry, Memory
from memories.recall.golden import GoldenDraft, save_golden
from tests.api.calling import Caller, signed_in
from tests.factories import make_conversation, make_key, make_memories, make_memory, make_user, scope_of

URL = "/api/v1/forget"


def test_preview_then_forget(api: Caller, support: Instance, sales: Instance) -> None:
    make_memories(support, 3, owner="alice")
    make_conversation(support, "Hello", "Hi", userId="alice")
    kept = [make_memory(support, "Bob knows Alice"), make_memory(sales, owner="alice")]
    save_golden(scope_of(support), GoldenDraft(query="Her tea?", user_id="alice"))
    found = api.get(f"{URL}?instanceId=support-bot&owner=alice").json["found"]
    assert (found["memories"], found["conversations"], found["messages"], found["golden"]) == (3, 1, 2, 1)
    assert Memory.objects.count() == 5
    answer = api.post(URL, {"instanceId": "support-bot", "owner": "alice", "expected": found})
    assert answer.status == 200
    assert answer.json == {"forgotten": found, "left": 0, "mentioned": {"memories": 1}}
    assert set(Memory.objects.values_list("id", flat=True)) == {memory.id for memory in kept}


def test_again_answers_nothing(api: Caller, support: Instance) -> None:
    make_memory(support, owner="alice")
    for n in (1, 0, 0):
        answer = api.post(URL, {"instanceId": "support-bot", "owner": "alice"})
        assert (answer.status, answer.json["forgotten"]["memories"]) == (200, n)
    assert AuditEntry.objects.filter(action="forgotten").count() == 1


def test_stale_expectation(api: Caller, support: Instance) -> None:
    make_memory(support, owner="alice")
    wanted = {"instanceId": "support-bot", "owner": "alice", "expected": {"memories": 2, "messages": None}}
    answer = api.post(URL, wanted)
    assert answer.error == (409, "stale_expectation")
    assert answer.json["found"]["memories"] == 1
    assert Memory.objects.exists()


def test_a_member_may_not_even_look(support: Instance) -> None:
    make_memory(support, owner="alice")
    member = signed_in(make_user("alice", support))
    assert member.get(f"{URL}?instanceId=support-bot&owner=alice").error == (403, "not_allowed")
    assert member.post(URL, {"instanceId": "support-bot", "owner": "alice"}).error == (403, "not_allowed")
    assert Memory.objects.exists()


def test_a_key_that_only_reads_may_look(support: Instance) -> None:
    make_memory(support, owner="alice")
    reader = Caller(make_key(support, read_only=True))
    assert reader.get(f"{URL}?instanceId=support-bot&owner=alice").json["found"]["memories"] == 1
    assert reader.post(URL, {"instanceId": "support-bot", "owner": "alice"}).error == (403, "read_only")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "owner"),
        ({"owner": ""}, "owner"),
        ({"owner": "  "}, "owner"),
        ({"owner": None}, "owner"),
        ({"owner": 5}, "owner"),
        ({"owner": "x" * 201}, "owner"),
        ({"owner": "\x00"}, "owner"),
        ({"owner": "a", "expected": {"memories": -1}}, "expected.memories"),
        ({"owner": "a", "expected": {"things": 1}}, "expected.things"),
        ({"owner": "a", "expected": 3}, "expected"),
    ],
)
def test_bad_input(api: Caller, support: Instance, fields: dict[str, object], field: str) -> None:
    make_memory(support)
    assert list(api.post(URL, {"instanceId": "support-bot", **fields}).errors) == [field]
    assert Memory.objects.exists()
