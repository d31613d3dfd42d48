"""GET and POST /api/v1/conversations"""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations.models import Conversation
from instances.models import Instance
from tests.api.calling import Answer, Caller
from tests.factories import make_conversation

URL = "/api/v1/conversations?instanceId=support-bot"


def start(api: Caller, **fields: Any) -> Answer:
    return api.post("/api/v1/conversations", {"instanceId": "support-bot", **fields})


def test_open(api: Caller) -> None:
    fields = {
        "externalId": "ticket-7",
        "channel": "email",
        "userId": "ann",
        "title": "A refund",
        "timeZone": "Asia/Tokyo",
    }
    answer = start(api, **fields)
    assert answer.status == 201
    shown = answer.json["conversation"]
    assert {name: shown[name] for name in fields} == fields
    assert (shown["instanceId"], shown["messageCount"], shown["closedAt"]) == ("support-bot", 0, None)
    assert shown["createdAt"] == shown["lastMessageAt"]
    assert api.get(URL).json["conversations"] == [shown]


def test_open_without_anything(api: Caller) -> None:
    shown = start(api).json["conversation"]
    assert [shown[name] for name in ("externalId", "channel", "userId", "title")] == [None] * 4
    assert shown["timeZone"] == "UTC"
    assert start(api).status == 201
    assert Conversation.objects.count() == 2


def test_null_is_nothing(api: Caller) -> None:
    """As answers have it: two conversations without an external id are two."""
    nulls = dict.fromkeys(("externalId", "channel", "userId", "title", "timeZone"))
    first, second = start(api, **nulls), start(api, **nulls)
    assert (first.status, second.status) == (201, 201)
    assert first.json["conversation"]["userId"] is None


def test_external_id_makes_it_idempotent(api: Caller, sales: Instance) -> None:
    theirs = make_conversation(sales, externalId="ticket-7")
    first = start(api, externalId="ticket-7", title="A refund")
    again = start(api, externalId="ticket-7", title="Another title")
    assert (first.status, again.status) == (201, 200)
    assert again.json == first.json
    assert first.json["conversation"]["id"] != str(theirs.id)


def test_a_known_conversation_takes_the_user_who_is_known_later(api: Caller) -> None:
    id = start(api, externalId="visit-1").json["conversation"]["id"]
    shown = start(api, externalId="visit-1", userId="ann").json["conversation"]
    assert (shown["id"], shown["userId"]) == (id, "ann")
    assert start(api, externalId="visit-1").json["conversation"] == shown
    assert api.get(f"{URL}&userId=ann").json["conversations"] == [shown]


def test_a_conversation_of_somebody_else_is_not_opened(api: Caller) -> None:
    start(api, externalId="visit-1", userId="ann")
    answer = start(api, externalId="visit-1", userId="bob")
    assert (answer.status, answer.json["code"], list(answer.json["errors"])) == (409, "taken", ["externalId"])
    assert Conversation.objects.get().owner == "ann"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"externalId": "x" * 201}, "externalId"),
        ({"channel": "x" * 65}, "channel"),
        ({"userId": "a\x00"}, "userId"),
        ({"title": 5}, "title"),
        ({"title": f"{'x' * 180} password=123456"}, "title"),
        ({"owner": "ann"}, "owner"),
        ({"timeZone": "Mars/Olympus"}, "timeZone"),
        ({"timeZone": "../etc/passwd"}, "timeZone"),
        ({"timeZone": "localtime"}, "timeZone"),
        ({"timeZone": "Factory"}, "timeZone"),
    ],
)
def test_bad_input_opens_nothing(fields: dict[str, Any], field: str, api: Caller) -> None:
    assert list(start(api, **fields).errors) == [field]
    assert not Conversation.objects.exists()


def test_list_has_the_latest_message_first(api: Caller, support: Instance, sales: Instance) -> None:
    first, second = make_conversation(support, title="first"), make_conversation(support, title="second")
    make_conversation(sales, title="theirs")
    assert [shown["title"] for shown in api.get(URL).json["conversations"]] == ["second", "first"]
    message = {"instanceId": "support-bot", "messages": [{"role": "user", "content": "Still there?"}]}
    api.post(f"/api/v1/conversations/{first.id}/messages", message)
    answer = api.get(URL).json
    assert [shown["id"] for shown in answer["conversations"]] == [str(first.id), str(second.id)]
    assert (answer["total"], answer["nextCursor"]) == (2, None)


def test_filters(api: Caller, support: Instance) -> None:
    make_conversation(support, title="a", channel="email", userId="ann", externalId="1")
    make_conversation(support, title="b", channel="chat", userId="ann", externalId="2")
    for query, found in {"channel=email": "a", "userId=ann": "ba", "externalId=2": "b", "channel=phone": ""}.items():
        answer = api.get(f"{URL}&{query}").json
        assert "".join(shown["title"] for shown in answer["conversations"]) == found
        assert answer["total"] == len(found)


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=101", "offset=-1", "offset=10001", "cursor=x", "page=1", "channel=%00", "userId=" + "x" * 201],
)
def test_list_bad_input(query: str, api: Caller) -> None:
    assert list(api.get(f"{URL}&{query}").errors) == [query.split("=")[0]]


@pytest.mark.parametrize("query", ["externalId=", "channel=", "userId=", "channel=%20"])
def test_an_empty_filter_does_not_mean_any(query: str, api: Caller) -> None:
    name = query.split("=")[0]
    assert api.get(f"{URL}&{query}").errors == {name: ["This may not be empty. Leave the filter out to mean any."]}


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 12))
def test_walking_the_cursor_visits_every_conversation_once(api: Caller, support: Instance, limit: int) -> None:
    if not Conversation.objects.exists():
        for _ in range(10):
            make_conversation(support)
        # The same moment for several: the id decides.
        moment = Conversation.objects.earliest("id").last_message_at
        Conversation.objects.filter(instance=support, id__gt=Conversation.objects.order_by("id")[4].id).update(
            last_message_at=moment
        )
    seen, cursor = [], ""
    for _ in range(12):
        answer = api.get(f"{URL}&limit={limit}&cursor={cursor}").json
        seen += [shown["id"] for shown in answer["conversations"]]
        cursor = answer["nextCursor"]
        if cursor is None:
            break
    ordered = Conversation.objects.order_by("-last_message_at", "-id").values_list("id", flat=True)
    assert seen == [str(id) for id in ordered]


def test_cursor_of_another_list(api: Caller, support: Instance) -> None:
    from tests.factories import make_memories

    make_memories(support, 2)
    cursor = api.get("/api/v1/memories?instanceId=support-bot&limit=1").json["nextCursor"]
    assert list(api.get(f"{URL}&cursor={cursor}").errors) == ["cursor"]
