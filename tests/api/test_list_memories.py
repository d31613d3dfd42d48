"""GET /api/v1/memories"""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from instances.models import Instance
from memories.models import Memory
from tests.api.calling import Caller
from tests.domain.transferring import import_text, lines
from tests.factories import make_conversation, make_memories, make_memory

URL = "/api/v1/memories?instanceId=support-bot"


def contents(api: Caller, filters: str = "") -> list[str]:
    answer = api.get(URL + filters)
    assert answer.status == 200, answer.json
    assert answer.json["total"] == len(answer.json["memories"])
    return [memory["content"] for memory in answer.json["memories"]]


def test_lists_newest_first(api: Caller, support: Instance) -> None:
    make_memory(support, "Ann likes tea")
    make_memory(support, "Ann moved to Bern")
    answer = api.get(URL)
    assert answer.status == 200
    assert {name: value for name, value in answer.json.items() if name != "memories"} == {
        "total": 2,
        "limit": 20,
        "offset": 0,
        "nextCursor": None,
        "searchMode": None,
    }
    assert [memory["content"] for memory in answer.json["memories"]] == ["Ann moved to Bern", "Ann likes tea"]


def test_empty_instance(api: Caller) -> None:
    answer = api.get(URL)
    assert (answer.json["total"], answer.json["memories"], answer.json["nextCursor"]) == (0, [], None)


def test_never_lists_another_instance(api: Caller, support: Instance, sales: Instance) -> None:
    make_memory(sales, "The price is 5")
    make_memory(support, "Ann likes tea")
    assert contents(api) == ["Ann likes tea"]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ("&category=fact", ["fact"]),
        ("&category=skill-note", ["lesson"]),
        ("&category=skill-note&role=context", ["old", "tagged"]),
        ("&role=lesson", ["lesson"]),
        ("&role=warning", ["lesson"]),
        ("&tag=vip", ["tagged"]),
        ("&tag=vip&tag=eu", ["tagged"]),
        ("&tag=vip&tag=us", []),
        ("&source=import", ["lesson"]),
        ("&owner=ann", ["tagged"]),
        ("&visibility=team", ["fact"]),
        ("&pinned=true", ["tagged"]),
        ("&pinned=false", ["old", "lesson", "fact"]),
        ("&minImportance=9", ["fact"]),
        ("&occurredAfter=2020-01-01T00:00:00Z", []),
        ("&occurredBefore=2020-01-01", ["old"]),
        ("&createdAfter=2020-01-01T00:00:00Z", ["old", "tagged", "lesson", "fact"]),
        ("&createdBefore=2020-01-01T00:00:00Z", []),
        ("&createdAfter=0001-01-01T00:00:00Z", ["old", "tagged", "lesson", "fact"]),
        ("&createdBefore=9999-12-31T00:00:00Z", ["old", "tagged", "lesson", "fact"]),
        ("&embedding=pending", ["old", "tagged", "lesson", "fact"]),
        ("&embedding=ready", []),
        ("&category=fact&pinned=true", []),
    ],
)
def test_filters(filters: str, found: list[str], api: Caller, support: Instance) -> None:
    make_memory(support, "fact", category="fact", importance=9, visibility="team")
    make_memory(support, "lesson", role="lesson", source="import")
    make_memory(support, "tagged", tags=["vip", "eu"], owner="ann", pinned=True)
    make_memory(support, "old", occurredAt="2019-06-01T12:00:00Z")
    assert contents(api, filters) == found


def test_what_came_after_the_last_that_was_seen(api: Caller) -> None:
    """Many are saved within a millisecond, and none may be lost between what was read and what is read next."""
    drafts = [{"content": str(n)} for n in range(50)]
    saved = api.post("/api/v1/memories/bulk", {"instanceId": "support-bot", "memories": drafts}).json["memories"]
    for place, memory in enumerate(saved):
        after = contents(api, f"&limit=100&createdAfter={memory['createdAt']}")
        assert after[: 50 - place] == [str(n) for n in range(49, place - 1, -1)]
        before = contents(api, f"&limit=100&createdBefore={memory['createdAt']}")
        assert after + before == [str(n) for n in range(49, -1, -1)]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ("&createdAfter=1968-01-01", ["new", "1969"]),
        ("&createdAfter=1969-07-20T20:17:00Z", ["new", "1969"]),
        ("&createdAfter=1969-07-20T20:17:01Z", ["new"]),
        ("&createdAfter=1970-01-01", ["new"]),
        ("&createdBefore=1968-01-01", ["1965"]),
        ("&createdBefore=1969-07-20T20:17:00Z", ["1965"]),
        ("&createdBefore=1970-01-01", ["1965", "1969"]),
        ("&createdBefore=1970-01-01T00:00:00.0005Z", ["1965", "1969"]),
        ("&createdBefore=1980-01-01", ["1965", "1969"]),
        ("&createdAfter=1960-01-01&createdBefore=1966-01-01", ["1965"]),
        ("&createdBefore=1960-01-01", []),
    ],
)
def test_imported_memories_from_before_1970(filters: str, found: list[str], api: Caller, support: Instance) -> None:
    import_text(
        support,
        lines(
            {"content": "1965", "createdAt": "1965-05-05T12:00:00Z"},
            {"content": "1969", "createdAt": "1969-07-20T20:17:00Z"},
        ),
    )
    make_memory(support, "new")
    # Which of those from before 1970 comes first is not said.
    assert sorted(contents(api, filters)) == sorted(found)
    assert sorted(contents(api, f"{filters}&category=general")) == sorted(found)
    assert sorted(contents(api, f"{filters}&search=1965+or+1969+or+new")) == sorted(found)


def test_filter_by_conversation(api: Caller, support: Instance) -> None:
    conversation = make_conversation(support)
    make_memory(support, "said there", sourceConversationId=str(conversation.id))
    make_memory(support, "said elsewhere")
    assert contents(api, f"&conversationId={conversation.id}") == ["said there"]


def test_superseded_only_on_request(api: Caller, support: Instance) -> None:
    make_memory(support, "old address", key="address")
    make_memory(support, "new address", key="address", dedupe="create")
    assert contents(api) == ["new address"]
    assert contents(api, "&includeSuperseded=true") == ["new address", "old address"]


def test_expired_are_gone(api: Caller, support: Instance) -> None:
    make_memory(support, "expired", expiresAt=datetime.now(UTC) - timedelta(seconds=1))
    make_memory(support, "expires later", expiresAt=datetime.now(UTC) + timedelta(days=1))
    assert contents(api) == ["expires later"]


def test_offset_and_limit(api: Caller, support: Instance) -> None:
    made = [memory.content for memory in make_memories(support, 5)][::-1]
    answer = api.get(URL + "&limit=2&offset=1")
    assert [memory["content"] for memory in answer.json["memories"]] == made[1:3]
    assert (answer.json["total"], answer.json["limit"], answer.json["offset"]) == (5, 2, 1)
    assert api.get(URL + "&offset=10000").json["memories"] == []


def test_cursor_survives_deletion_and_insertion(api: Caller, support: Instance) -> None:
    made = make_memories(support, 5)[::-1]
    first = api.get(URL + "&limit=2").json
    Memory.objects.filter(id=made[1].id).delete()
    make_memory(support, "new")
    second = api.get(URL + f"&limit=2&cursor={first['nextCursor']}").json
    assert [memory["id"] for memory in second["memories"]] == [str(memory.id) for memory in made[2:4]]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 30), category=st.sampled_from(["", "&category=fact"]))
def test_walking_the_cursor_visits_every_memory_once(api: Caller, support: Instance, limit: int, category: str) -> None:
    if not Memory.objects.filter(instance=support).exists():
        make_memories(support, 14)
        make_memories(support, 9, category="fact")
    rows = Memory.objects.filter(instance=support, **({"category": "fact"} if category else {}))
    seen, cursor = [], ""
    for _ in range(30):
        answer = api.get(f"{URL}&limit={limit}{category}&cursor={cursor}").json
        assert len(answer["memories"]) <= limit
        assert answer["total"] == rows.count()
        seen += [memory["id"] for memory in answer["memories"]]
        cursor = answer["nextCursor"]
        if cursor is None:
            break
    assert seen == [str(id) for id in rows.order_by("-id").values_list("id", flat=True)]


def test_number_of_statements_does_not_depend_on_rows(api: Caller, support: Instance) -> None:
    api.get(URL)  # notes when the key was used, once a minute
    make_memories(support, 1)
    with CaptureQueriesContext(
        connection,
    ) as few:
        api.get(URL + "&limit=100")
    make_memories(support, 99)
    with CaptureQueriesContext(connection) as many:
        api.get(URL + "&limit=100")
    assert len(few) == len(many) == 4, [query["sql"] for query in many]


@pytest.mark.parametrize(
    ("query", "field", "reason"),
    [
        ("limit=0", "limit", "Must be at least 1."),
        ("limit=101", "limit", "Must be at most 100."),
        ("limit=ten", "limit", "Enter a whole number."),
        ("limit=1.5", "limit", "Enter a whole number."),
        ("offset=-1", "offset", "Must be at least 0."),
        ("offset=10001", "offset", "Must be at most 10000."),
        ("offset=1000000000", "offset", "Must be at most 10000."),
        ("page=0", "page", "Unknown field."),
        ("category=food", "category", "“food” is not a category. Choose one of: general, preference, fact, event, "
         "relationship, decision."),
        ("visibility=all", "visibility", "“all” is not known. Choose one of: 'private', 'instance', 'team' or 'org'."),
        ("embedding=done", "embedding", "“done” is not known. Choose one of: 'ready', 'pending' or 'failed'."),
        ("minImportance=0", "minImportance", "Must be at least 1."),
        ("minImportance=11", "minImportance", "Must be at most 10."),
        ("minImportance=high", "minImportance", "Enter a whole number."),
        ("pinned=maybe", "pinned", "Enter true or false."),
        ("createdAfter=yesterday", "createdAfter", "Enter a date and time like 2026-05-12T15:00:00Z."),
        ("occurredAfter=9999-12-31T23:59:59-10:00", "occurredAfter",
         "This is before the year 1 or after the year 9999."),
        ("createdAfter=2030", "createdAfter", "Enter a date and time like 2026-05-12T15:00:00Z."),
        ("category=", "category", "This may not be empty. Leave the filter out to mean any."),
        ("owner=", "owner", "This may not be empty. Leave the filter out to mean any."),
        ("owner=%20", "owner", "This may not be empty. Leave the filter out to mean any."),
        ("tag=", "tag.0", "This may not be empty. Leave the filter out to mean any."),
        ("createdBefore=", "createdBefore", "This may not be empty. Leave the filter out to mean any."),
        ("conversationId=5", "conversationId", "This is not an id."),
        ("owner=%00", "owner", "The NUL character is not allowed."),
        ("source=%00", "source", "The NUL character is not allowed."),
        ("tag=%00", "tag.0", "The NUL character is not allowed."),
        ("cursor=abc", "cursor",
         "This cursor is not valid here. Use the nextCursor of an earlier answer, unchanged and with the same "
         "filters."),
    ],
)  # fmt: skip
def test_bad_input(query: str, field: str, reason: str, api: Caller) -> None:
    answer = api.get(f"{URL}&{query}")
    assert answer.errors == {field: [reason]}
    assert answer.json["detail"] == f"{field}: {reason}"


def test_tampered_cursor(api: Caller, support: Instance, sales: Instance) -> None:
    make_memories(support, 3)
    cursor = api.get(URL + "&limit=1").json["nextCursor"]
    for wrong in (cursor[:-1], cursor + "a", "x" + cursor, cursor.swapcase(), cursor.split(":")[0], "::", "%00"):
        assert list(api.get(f"{URL}&cursor={wrong}").errors) == ["cursor"]


def test_cursor_and_offset_together(api: Caller, support: Instance) -> None:
    make_memories(support, 3)
    cursor = api.get(URL + "&limit=1").json["nextCursor"]
    assert api.get(f"{URL}&cursor={cursor}&offset=1").errors == {"cursor": ["Send offset or cursor, not both."]}


def test_every_mistake_is_named(api: Caller) -> None:
    assert sorted(api.get(URL + "&limit=0&category=food&mood=good").errors) == ["category", "limit", "mood"]
