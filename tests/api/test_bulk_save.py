"""POST /api/v1/memories/bulk"""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.models import Message
from instances.models import Instance
from memories.models import Memory
from tests.api.calling import Answer, Caller
from tests.factories import make_conversation, make_memory

OWN = {"pk", "id", "created_at", "updated_at", "last_seen_at"}
STORED = [field.name for field in Memory._meta.concrete_fields if field.name not in OWN]


def save(api: Caller, memories: Any) -> Answer:
    return api.post("/api/v1/memories/bulk", {"instanceId": "support-bot", "memories": memories})


def test_saves_in_order(api: Caller) -> None:
    answer = save(api, [{"content": "One", "category": "fact"}, {"content": "Two", "importance": 9}])
    assert answer.status == 201
    assert [memory["content"] for memory in answer.json["memories"]] == ["One", "Two"]
    listed = api.get("/api/v1/memories?instanceId=support-bot").json
    assert listed["memories"] == answer.json["memories"][::-1]
    assert listed["total"] == 2


def test_says_in_which_memories_credentials_were_replaced(api: Caller) -> None:
    token = f"ghp_{'a' * 36}"
    answer = save(api, [{"content": "Harmless"}, {"content": f"Use {token}", "tags": [token]}])
    harmless, redacted = answer.json["memories"]
    assert answer.json["redacted"] == {redacted["id"]: ["GitHub token", "GitHub token"]}
    assert token not in str(answer.json)
    assert "redacted" not in save(api, [{"content": harmless["content"]}]).json


def test_stores_the_same_as_one_by_one(api: Caller, support: Instance) -> None:
    conversation = make_conversation(support, "Hello")
    draft = {
        "content": 'tab\t, line\n, return\r, \\N, \\., "quotes", {braces}, 😀',
        "summary": "\\t is not a tab",
        "category": "skill-note",
        "importance": 9,
        "confidence": 0.25,
        "tags": ['a "quoted" tag', "comma, tag", "back\\slash", "NULL", "ü"],
        "pinned": True,
        "visibility": "private",
        "owner": "ann",
        "source": "crm",
        "sourceConversationId": str(conversation.id),
        "sourceMessageIds": [str(Message.objects.get().id)],
        "occurredAt": "1969-07-20T20:17:40.123456Z",
        "expiresAt": "2999-01-01T00:00:00Z",
        "channel": "email",
        "evidence": {"text": 'a "b" \\ c\n', "list": [1, 2.5, None, True]},
    }
    single = api.post("/api/v1/memories", {"instanceId": "support-bot", **draft}).json["memory"]
    bulk, _ = save(api, [draft, {"content": "Something else"}]).json["memories"]
    own = ("id", "createdAt", "updatedAt")
    assert {name: bulk[name] for name in bulk if name not in own} == {
        name: single[name] for name in single if name not in own
    }
    for saved in (single, bulk):
        assert api.get(f"/api/v1/memories/{saved['id']}?instanceId=support-bot").json["memory"] == saved
    first, second = Memory.objects.order_by("id").values(*STORED)[:2]
    assert (first.pop("conversation_position"), second.pop("conversation_position")) == (1, 2)
    assert first == second


def test_thousand_in_a_constant_number_of_statements(api: Caller, support: Instance) -> None:
    save(api, [{"content": "One"}])
    with CaptureQueriesContext(connection) as two:
        save(api, [{"content": "One"}, {"content": "Two"}])
    with CaptureQueriesContext(connection) as many:
        assert save(api, [{"content": f"Memory {n}"} for n in range(1000)]).status == 201
    assert len(many) == len(two)
    assert Memory.objects.filter(instance=support).count() == 1003


@pytest.mark.parametrize(
    ("memories", "errors"),
    [
        ([], {"memories": ["At least 1 is needed."]}),
        (None, {"memories": ["Send a list."]}),
        ({"content": "x"}, {"memories": ["Send a list."]}),
        (["x"], {"memories.0": ["Send an object."]}),
        ([{"content": "x"}] * 1001, {"memories": ["At most 1,000 are allowed; this has 1,001."]}),
        ([{"content": "x"}] * 3 + [{"content": "x", "importance": 11}],
         {"memories.3.importance": ["Must be at most 10."]}),
        ([{"content": "x"}, {}], {"memories.1.content": ["This field is required."]}),
        ([{"content": "x", "colour": 1}], {"memories.0.colour": ["Unknown field."]}),
        ([{"content": "x", "instanceId": "sales-bot"}], {"memories.0.instanceId": ["Unknown field."]}),
        ([{"content": "x", "visibility": "private"}], {"memories.0.owner": ["A private memory needs an owner."]}),
    ],
)  # fmt: skip
def test_bad_input_saves_nothing(memories: Any, errors: dict[str, list[str]], api: Caller, sales: Instance) -> None:
    assert save(api, memories).errors == errors
    assert not Memory.objects.exists()


def test_missing_list(api: Caller) -> None:
    answer = api.post("/api/v1/memories/bulk", {"instanceId": "support-bot"})
    assert answer.errors == {"memories": ["This field is required."]}


def test_conversation_of_another_instance_saves_nothing(api: Caller, sales: Instance) -> None:
    theirs = make_conversation(sales)
    answer = save(api, [{"content": "x"}, {"content": "y", "sourceConversationId": str(theirs.id)}])
    assert list(answer.errors) == ["memories.1.sourceConversationId"]
    assert not Memory.objects.exists()


def test_taken_key_saves_nothing(api: Caller, support: Instance) -> None:
    make_memory(support, "Ann likes tea", key="drink")
    answer = save(api, [{"content": "x"}, {"content": "y", "key": "drink"}])
    assert answer.error == (409, "key_taken")
    assert answer.json["errors"] == {"memories.1.key": ["Another memory has this key."]}
    bob = {"content": "z", "key": "food", "owner": "bob"}
    answer = save(api, [{"content": "x", "key": "food"}, bob, {"content": "y", "key": "food"}])
    assert answer.error == (409, "key_taken")
    assert answer.json["errors"] == {"memories.2.key": ["This key is in the list twice."]}
    assert Memory.objects.get().content == "Ann likes tea"


def test_credentials_are_not_stored(api: Caller) -> None:
    answer = save(api, [{"content": "password: hunter2hunter2"}])
    assert answer.json["memories"][0]["content"] == "password: [redacted password]"
