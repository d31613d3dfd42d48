"""POST /api/v1/memories"""

import re
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from conversations.models import Message
from instances.models import Instance
from memories.models import AuditEntry, Chunk, Memory, MemoryVersion
from tests.api.calling import Answer, Caller, signed_in
from tests.factories import make_conversation, make_memory, make_user

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def save(api: Caller, **fields: Any) -> Answer:
    return api.post("/api/v1/memories", {"instanceId": "support-bot", "content": "Ann likes tea", **fields})


def test_saves_with_defaults(api: Caller) -> None:
    answer = save(api)
    assert (answer.status, answer.json["event"]) == (201, "created")
    assert "redacted" not in answer.json
    memory = answer.json["memory"]
    assert uuid.UUID(memory.pop("id")).version == 7
    assert ISO.fullmatch(memory.pop("createdAt"))
    assert ISO.fullmatch(memory.pop("updatedAt"))
    assert memory == {
        "instanceId": "support-bot",
        "key": None,
        "content": "Ann likes tea",
        "summary": None,
        "category": "general",
        "role": "context",
        "importance": 5,
        "confidence": 1.0,
        "tags": [],
        "pinned": False,
        "visibility": "instance",
        "owner": None,
        "source": "api",
        "sourceConversationId": None,
        "sourceMessageIds": [],
        "occurredAt": None,
        "channel": None,
        "expiresAt": None,
        "evidence": {},
        "status": "active",
        "supersededById": None,
        "supersedeReason": None,
        "embedding": "pending",
        "accessCount": 0,
        "lastAccessedAt": None,
    }


def test_saves_everything(api: Caller, support: Instance) -> None:
    conversation = make_conversation(support, "I like tea")
    fields = {
        "key": "drink",
        "content": "Ann likes tea ☕",
        "summary": "tea",
        "category": "preference",
        "role": "identity",
        "importance": 8,
        "confidence": 0.5,
        "tags": ["food", "ann"],
        "pinned": True,
        "visibility": "private",
        "owner": "ann",
        "source": "crm",
        "sourceConversationId": str(conversation.id),
        "occurredAt": "2026-05-12T15:00:00Z",
        "channel": "email",
        "expiresAt": "2099-01-01T00:00:00Z",
        "evidence": {"count": 3, "domains": ["a.example"]},
    }
    memory = save(api, **fields).json["memory"]
    assert {name: memory[name] for name in fields} == fields
    again = api.get(f"/api/v1/memories/{memory['id']}?instanceId=support-bot").json["memory"]
    assert again == memory


def test_other_words(api: Caller) -> None:
    memory = save(api, kind="skill-note").json["memory"]
    assert (memory["category"], memory["role"]) == ("general", "lesson")
    memory = save(api, kind="Fact", type="warning").json["memory"]
    assert (memory["category"], memory["role"]) == ("fact", "lesson")


def test_times_are_answered_in_utc(api: Caller) -> None:
    memory = save(api, occurredAt="2026-05-12T15:00:00+02:00", expiresAt="2099-05-12 15:00").json["memory"]
    assert memory["occurredAt"] == "2026-05-12T13:00:00Z"
    assert memory["expiresAt"] == "2099-05-12T15:00:00Z"


def test_source_of_a_person_is_manual(support: Instance) -> None:
    ann: User = make_user("ann", support)
    assert save(signed_in(ann)).json["memory"]["source"] == "manual"


def test_same_key_updates(api: Caller) -> None:
    first = save(api, key="drink", importance=9).json["memory"]
    answer = save(api, key="drink", content="Ann likes coffee")
    assert (answer.status, answer.json["event"]) == (200, "updated")
    assert answer.json["memory"]["id"] == first["id"]
    assert answer.json["memory"]["content"] == "Ann likes coffee"
    assert answer.json["memory"]["importance"] == 9
    assert MemoryVersion.objects.get().content == "Ann likes tea"


def test_null_under_a_key_that_is_taken_is_left_out(api: Caller, support: Instance) -> None:
    """Programs that write down every field of a type send many nulls: an expiry or a link must not be lost by one."""
    had = {
        "summary": "Tea",
        "tags": ["drink"],
        "channel": "phone",
        "evidence": {"confidence": "high"},
        "occurredAt": "2026-05-12T15:00:00Z",
        "expiresAt": "2999-01-01T00:00:00Z",
        "sourceConversationId": str(make_conversation(support, "I like tea").id),
        "sourceMessageIds": [str(Message.objects.get().id)],
    }
    save(api, key="drink", **had)
    answer = save(api, key="drink", importance=9, **dict.fromkeys(had))
    assert (answer.status, answer.json["memory"]["importance"]) == (200, 9)
    assert {name: answer.json["memory"][name] for name in had} == had


def test_same_key_of_another_owner_is_another_memory(api: Caller) -> None:
    save(api, key="drink", owner="ann")
    assert save(api, key="drink", owner="bob").status == 201


def test_create_supersedes(api: Caller) -> None:
    first = save(api, key="drink").json["memory"]
    answer = save(api, key="drink", content="Ann likes coffee", dedupe="create", supersedeReason="she said so")
    assert (answer.status, answer.json["event"]) == (201, "created")
    old = api.get(f"/api/v1/memories/{first['id']}?instanceId=support-bot").json["memory"]
    assert old["status"] == "superseded"
    assert old["supersededById"] == answer.json["memory"]["id"]
    assert old["supersedeReason"] == "she said so"


def test_what_is_superseded_says_so_without_a_reason_too(api: Caller) -> None:
    first = save(api, key="drink", content="Ann likes tea").json["memory"]
    save(api, key="drink", content="Ann likes coffee", dedupe="create")
    old = api.get(f"/api/v1/memories/{first['id']}?instanceId=support-bot").json["memory"]
    assert old["supersedeReason"] == "saved again under the same key"


def test_reject_shows_the_current_memory(api: Caller) -> None:
    first = save(api, key="drink").json["memory"]
    answer = save(api, key="drink", content="Ann likes coffee", dedupe="reject")
    assert answer.error == (409, "key_taken")
    assert answer.json["memory"] == first
    assert Memory.objects.get().content == "Ann likes tea"
    assert save(api, key="drink", content="Coffee", dedupe="reject", supersedeReason="new").json["event"] == "updated"


def test_credentials_are_not_stored(api: Caller) -> None:
    answer = save(api, content="The key is sk-proj-abcdefghijklmnopqrstuvwxyz123456")
    assert answer.json["redacted"] == ["API key"]
    assert "abcdefghijkl" not in str(answer.json)
    assert Memory.objects.get().content == "The key is [redacted API key]"


@pytest.mark.parametrize("dedupe", ["update", "create"])
def test_credentials_are_not_stored_in_a_reason(api: Caller, dedupe: str) -> None:
    save(api, key="drink")
    reason = "AKIAABCDEFGHIJKLMNOP was revoked"
    answer = save(api, key="drink", content="Ann likes coffee", dedupe=dedupe, supersedeReason=reason)
    assert answer.json["redacted"] == ["AWS key"]
    kept = [version.reason for version in MemoryVersion.objects.all()]
    kept += [memory.supersede_reason for memory in Memory.objects.filter(status="superseded")]
    assert kept == ["[redacted AWS key] was revoked"]


def test_limits_are_inclusive(api: Caller) -> None:
    assert save(api, content="x" * 32_000, importance=1).status == 201
    assert save(api, content="😀" * 32_000, importance=10).status == 201


WRONG_CATEGORY = "is not a category. Choose one of: general, preference, fact, event, relationship, decision."
LONG = "At most 32,000 characters are allowed; this has 1,000,000."


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({"content": ""}, "content", "This may not be empty."),
        ({"content": " \n\t "}, "content", "This may not be empty."),
        ({"content": " \u200b\u2060\ufeff "}, "content", "This may not be empty."),
        ({"content": None}, "content", "Enter text."),
        ({"content": 5}, "content", "Enter text."),
        ({"content": ["x"]}, "content", "Enter text."),
        ({"content": "x" * 1_000_000}, "content", LONG),
        ({"content": "a\x00b"}, "content", "The NUL character is not allowed."),
        ({"category": "food"}, "category", f"“food” {WRONG_CATEGORY}"),
        ({"kind": "food"}, "category", f"“food” {WRONG_CATEGORY}"),
        ({"category": 5}, "category", "Enter text."),
        ({"category": None}, "category", "Enter text."),
        ({"role": ["lesson"]}, "role", "Enter text."),
        ({"importance": 0}, "importance", "Must be at least 1."),
        ({"importance": 11}, "importance", "Must be at most 10."),
        ({"importance": "high"}, "importance", "Enter a whole number."),
        ({"importance": 3.5}, "importance", "Enter a whole number."),
        ({"importance": 1e308}, "importance", "This number has too many digits."),
        ({"importance": True}, "importance", "Enter a number."),
        ({"importance": None}, "importance", "Enter a whole number."),
        ({"confidence": 1.1}, "confidence", "Must be at most 1."),
        ({"confidence": "nan"}, "confidence", "Enter a finite number."),
        ({"tags": "vip"}, "tags", "Send a list."),
        ({"tags": ["x" * 65]}, "tags.0", "At most 64 characters are allowed; this has 65."),
        ({"tags": [f"{'x' * 40} password=123456"]}, "tags.0",
         "With its credentials replaced this has 69 characters; at most 64 are allowed."),
        ({"content": f"{'x' * 31_980} password=123456"}, "content",
         "With its credentials replaced this has 32,009 characters; at most 32,000 are allowed."),
        ({"supersedeReason": f"{'x' * 1_980} password=123456"}, "supersedeReason",
         "With its credentials replaced this has 2,009 characters; at most 2,000 are allowed."),
        ({"evidence": {"a": "password=123456 " * 1_000}}, "evidence",
         "With its credentials replaced this has 29,009 characters; at most 20,000 are allowed."),
        ({"tags": ["a\x00"]}, "tags.0", "The NUL character is not allowed."),
        ({"tags": [str(n) for n in range(33)]}, "tags", "At most 32 are allowed; this has 33."),
        ({"source": "x" * 33}, "source", "At most 32 characters are allowed; this has 33."),
        ({"occurredAt": "soon"}, "occurredAt", "Enter a date and time like 2026-05-12T15:00:00Z."),
        ({"expiresAt": "2020-01-01T00:00:00Z"}, "expiresAt", "This is in the past."),
        ({"expiresAt": "2027"}, "expiresAt", "Enter a date and time like 2026-05-12T15:00:00Z."),
        ({"expiresAt": " 1830000000.5 "}, "expiresAt", "Enter a date and time like 2026-05-12T15:00:00Z."),
        ({"occurredAt": 1830000000}, "occurredAt", "Enter a date and time like 2026-05-12T15:00:00Z."),
        ({"occurredAt": True}, "occurredAt", "Enter a date and time like 2026-05-12T15:00:00Z."),
        ({"key": f"ghp_{'a' * 36}"}, "key",
         "This looks like a credential (GitHub token), which is no name for a memory."),
        ({"expiresAt": "9999-12-31T23:59:59-10:00"}, "expiresAt", "This is before the year 1 or after the year 9999."),
        ({"evidence": []}, "evidence", "Send an object."),
        ({"evidence": {"a": "b\x00"}}, "evidence", "The NUL character is not allowed."),
        ({"evidence": {"a": {"b\x00": 1}}}, "evidence", "The NUL character is not allowed."),
        ({"dedupe": "ignore"}, "dedupe", "“ignore” is not known. Choose one of: 'update', 'create' or 'reject'."),
        ({"sourceConversationId": "5"}, "sourceConversationId", "This is not an id."),
        ({"sourceConversationId": str(uuid.uuid4())}, "sourceConversationId",
         "There is no such conversation in this instance."),
        ({"visibility": "private"}, "owner", "A private memory needs an owner."),
        ({"category": "fact", "kind": "fact"}, "body", "Send category or kind, not both."),
        ({"id": str(uuid.uuid4())}, "id", "Unknown field."),
    ],
)  # fmt: skip
def test_bad_input(fields: dict[str, Any], field: str, reason: str, api: Caller) -> None:
    answer = save(api, **fields)
    assert answer.errors == {field: [reason]}
    assert len(answer.response.content) < 2000
    assert not Memory.objects.exists()
    assert not AuditEntry.objects.exists()


def test_infinite_numbers_in_evidence(api: Caller) -> None:
    raw = b'{"instanceId": "support-bot", "content": "x", "evidence": {"a": [1e999]}}'
    assert api.send("POST", "/api/v1/memories", raw=raw).errors == {"evidence": ["Numbers must be finite."]}


def test_large_evidence(api: Caller) -> None:
    answer = save(api, evidence={"a": "x" * 40_000})
    assert list(answer.errors) == ["evidence"]


def test_missing_content(api: Caller) -> None:
    answer = api.post("/api/v1/memories", {"instanceId": "support-bot"})
    assert answer.errors == {"content": ["This field is required."]}


def test_conversation_of_another_instance(api: Caller, sales: Instance) -> None:
    theirs = make_conversation(sales, "Hello")
    answer = save(api, sourceConversationId=str(theirs.id))
    assert answer.errors == {"sourceConversationId": ["There is no such conversation in this instance."]}
    assert not Memory.objects.exists()


def test_key_of_another_instance_is_free(api: Caller, sales: Instance) -> None:
    make_memory(sales, "Their drink", key="drink")
    assert save(api, key="drink", dedupe="reject").status == 201


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    "content", "category", "kind", "role", "type", "importance", "confidence", "key", "summary", "tags", "pinned",
    "visibility", "owner", "source", "sourceConversationId", "sourceMessageIds", "occurredAt", "channel", "expiresAt",
    "evidence", "supersedeReason", "dedupe",
]  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=st.dictionaries(st.sampled_from(FIELDS), anything, max_size=4))
def test_no_input_breaks_it(api: Caller, fields: dict[str, Any]) -> None:
    answer = save(api, **fields)
    assert answer.status in {200, 201} or answer.errors


def test_a_number_with_too_many_digits_is_said_in_our_words(api: Caller) -> None:
    raw = b'{"instanceId": "support-bot", "content": "Tea", "importance": ' + b"9" * 5_000 + b"}"
    answer = api.send("POST", "/api/v1/memories", raw=raw)
    assert answer.error == (400, "invalid_json")
    assert answer.json["detail"] == "The body is not valid JSON: a number in it has too many digits"


def test_a_memory_goes_into_the_database_in_one_statement(api: Caller, support: Instance) -> None:
    save(api)
    with CaptureQueriesContext(connection) as statements:
        save(api, content="A long story. " * 400, key="story")
    writing = [statement["sql"] for statement in statements if "INSERT INTO memories" in statement["sql"]]
    assert len(writing) == 1
    memory = Memory.objects.get(instance=support, key="story")
    assert Chunk.objects.filter(instance=support, memory_id=memory.id).count() > 1
    assert AuditEntry.objects.filter(instance=support, action="created", memory_ids=[memory.id]).count() == 1


def test_a_date_without_dashes_is_a_date(api: Caller) -> None:
    assert save(api, occurredAt="20271231").json["memory"]["occurredAt"] == "2027-12-31T00:00:00Z"


def test_credentials_in_tags_and_evidence(api: Caller) -> None:
    token = f"ghp_{'a' * 36}"
    evidence = {"how": [f"said {token}", 5], token: {"deep": token}, "corroborated": 2}
    answer = save(api, tags=["vip", token], evidence=evidence)
    assert answer.json["redacted"] == ["GitHub token"] * 4
    assert token not in str(answer.json)
    hidden = "[redacted GitHub token]"
    assert answer.json["memory"]["tags"] == ["vip", hidden]
    stored = Memory.objects.get().evidence
    assert stored == {"how": [f"said {hidden}", 5], hidden: {"deep": hidden}, "corroborated": 2}
