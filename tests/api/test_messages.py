"""GET /api/v1/conversations/{id} and POST /api/v1/conversations/{id}/messages"""

from typing import Any

import pytest
from django.utils import timezone

from conversations.models import Conversation, Message
from instances.models import Instance
from tests.api.calling import Answer, Caller
from tests.factories import make_conversation


def url(conversation: Conversation, query: str = "") -> str:
    return f"/api/v1/conversations/{conversation.id}?instanceId=support-bot{query}"


def add(api: Caller, conversation: Conversation, messages: Any) -> Answer:
    body = {"instanceId": "support-bot", "messages": messages}
    return api.post(f"/api/v1/conversations/{conversation.id}/messages", body)


def contents(answer: Answer) -> list[str]:
    return [message["content"] for message in answer.json["messages"]]


@pytest.fixture
def conversation(support: Instance) -> Conversation:
    return make_conversation(support, "Hello", "Good morning", title="A refund")


def test_get(api: Caller, conversation: Conversation) -> None:
    answer = api.get(url(conversation))
    assert answer.status == 200
    assert answer.json["conversation"]["title"] == "A refund"
    assert answer.json["conversation"]["messageCount"] == answer.json["total"] == 2
    first = answer.json["messages"][0]
    assert (first["role"], first["content"], first["position"]) == ("user", "Hello", 1)
    assert first["conversationId"] == str(conversation.id)
    assert contents(answer) == ["Hello", "Good morning"]


def test_get_in_parts(api: Caller, support: Instance) -> None:
    texts = [f"Message {number}" for number in range(7)]
    conversation = make_conversation(support, *texts)
    assert contents(api.get(url(conversation, "&limit=2&offset=3"))) == texts[3:5]
    seen, cursor = [], ""
    while cursor is not None:
        answer = api.get(url(conversation, f"&limit=3&cursor={cursor}"))
        seen += contents(answer)
        cursor = answer.json["nextCursor"]
    assert seen == texts


def test_get_bad_input(api: Caller, conversation: Conversation, support: Instance) -> None:
    for query in ("limit=0", "limit=101", "offset=-1", "cursor=x", "page=1"):
        assert list(api.get(url(conversation, f"&{query}")).errors) == [query.split("=")[0]]
    other = make_conversation(support, "One", "Two")
    cursor = api.get(url(other, "&limit=1")).json["nextCursor"]
    assert list(api.get(url(conversation, f"&cursor={cursor}")).errors) == ["cursor"]


def test_append(api: Caller, conversation: Conversation) -> None:
    answer = add(
        api,
        conversation,
        [
            {"role": "user", "content": "I want my money back", "createdAt": "2026-01-01T10:00:00+01:00"},
            {"role": "assistant", "content": "Of course"},
        ],
    )
    assert answer.status == 201
    assert [message["position"] for message in answer.json["messages"]] == [3, 4]
    assert answer.json["messages"][0]["createdAt"] == "2026-01-01T09:00:00Z"
    shown = api.get(url(conversation))
    assert contents(shown) == ["Hello", "Good morning", "I want my money back", "Of course"]
    assert shown.json["conversation"]["messageCount"] == 4
    assert shown.json["conversation"]["lastMessageAt"] == answer.json["messages"][1]["createdAt"]


def test_a_conversation_has_no_latest_message_in_the_future(api: Caller, conversation: Conversation) -> None:
    """Otherwise the conversation would never go quiet, and stay at the top of the list."""
    answer = add(api, conversation, [{"role": "user", "content": "Later", "createdAt": "2999-01-01T00:00:00Z"}])
    assert answer.json["messages"][0]["createdAt"] == "2999-01-01T00:00:00Z"
    conversation.refresh_from_db()
    assert conversation.last_message_at <= timezone.now()


def test_null_is_nothing(api: Caller, conversation: Conversation) -> None:
    message = {"role": "user", "content": "Hi", "createdAt": None, "externalId": None}
    first, second = add(api, conversation, [message, message]).json["messages"]
    assert (first["externalId"], second["position"]) == (None, first["position"] + 1)


def test_external_id_makes_it_idempotent(api: Caller, conversation: Conversation) -> None:
    messages = [{"role": "user", "content": "One", "externalId": "a"}, {"role": "user", "content": "Two"}]
    first = add(api, conversation, messages)
    again = add(api, conversation, [messages[0], {"role": "user", "content": "Three", "externalId": "b"}])
    assert again.json["messages"][0] == first.json["messages"][0]
    twice = add(api, conversation, [{"role": "user", "content": "Four", "externalId": "c"}] * 2)
    assert twice.status == 201
    assert twice.json["messages"][0] == twice.json["messages"][1]
    assert contents(api.get(url(conversation))) == ["Hello", "Good morning", "One", "Two", "Three", "Four"]


@pytest.mark.parametrize("other", [{"content": "One, they contents"}, {"role": "assistant"}])
def test_an_external_id_that_says_something_else_is_refused(
    other: dict[str, str], api: Caller, conversation: Conversation
) -> None:
    one = {"role": "user", "content": "One", "externalId": "a"}
    two = {"role": "user", "content": "Two"}
    add(api, conversation, [one])
    for messages in ([two, {**one, **other}], [{**one, "externalId": "b"}, {**one, "externalId": "b", **other}]):
        answer = add(api, conversation, messages)
        assert (answer.status, answer.json["code"]) == (409, "taken")
        reason = f"“{messages[1]['externalId']}” is there already and says something else."
        assert answer.json["errors"] == {"messages.1.externalId": [reason]}
    assert contents(api.get(url(conversation))) == ["Hello", "Good morning", "One"]


def test_a_credential_that_was_stored_before_it_was_known_as_one_is_the_same_message(
    api: Caller, conversation: Conversation
) -> None:
    secret = {"role": "user", "content": "my password: hunter2hunter2", "externalId": "a"}
    first = add(api, conversation, [secret])
    Message.objects.filter(external_id="a").update(content=secret["content"])
    assert add(api, conversation, [secret]).json["messages"][0]["id"] == first.json["messages"][0]["id"]


def test_a_request_that_is_sent_again_is_known_by_its_dates(api: Caller, conversation: Conversation) -> None:
    ok = {"role": "user", "content": "ok", "createdAt": "2026-05-12T15:00:00Z"}
    secret = {"role": "user", "content": "my password: hunter2hunter2", "createdAt": "2026-05-12T15:00:01Z"}
    first = add(api, conversation, [ok, ok, secret])
    assert add(api, conversation, [ok, ok, secret]).json == first.json
    others = [{**ok, "role": "assistant"}, {**ok, "content": "fine"}, {**ok, "createdAt": "2026-05-12T16:00:00Z"}]
    add(api, conversation, [ok, *others])
    shown = contents(api.get(url(conversation)))
    assert shown[2:] == ["ok", "ok", "my password: [redacted password]", "ok", "fine", "ok"]


def test_what_is_said_again_without_a_date_or_in_another_conversation_is_another_message(
    api: Caller, conversation: Conversation, support: Instance
) -> None:
    dated = {"role": "user", "content": "Hi", "createdAt": "2026-05-12T15:00:00Z"}
    undated = {"role": "user", "content": "Hi"}
    for _ in range(2):
        add(api, conversation, [undated])
    add(api, make_conversation(support), [dated])
    add(api, conversation, [dated])
    assert contents(api.get(url(conversation)))[2:] == ["Hi", "Hi", "Hi"]


def test_credentials_are_not_stored(api: Caller, conversation: Conversation) -> None:
    add(api, conversation, [{"role": "user", "content": "my password: hunter2hunter2"}])
    assert Message.objects.get(position=3).content == "my password: [redacted password]"


@pytest.mark.parametrize(
    ("messages", "errors"),
    [
        ([], {"messages": ["At least 1 is needed."]}),
        (None, {"messages": ["Send a list."]}),
        (["Hello"], {"messages.0": ["Send an object."]}),
        ([{"role": "user", "content": "x"}] * 1001, {"messages": ["At most 1,000 are allowed; this has 1,001."]}),
        ([{"role": "user", "content": "x"}, {"role": "user", "content": " "}],
         {"messages.1.content": ["This may not be empty."]}),
        ([{"role": "user", "content": "a\x00"}], {"messages.0.content": ["The NUL character is not allowed."]}),
        ([{"role": "user", "content": "x" * 100_001}],
         {"messages.0.content": ["At most 100,000 characters are allowed; this has 100,001."]}),
        ([{"role": "robot", "content": "x"}],
         {"messages.0.role": ["“robot” is not known. Choose one of: 'user', 'assistant', 'system' or 'tool'."]}),
        ([{"role": "user"}], {"messages.0.content": ["This field is required."]}),
        ([{"role": "user", "content": "x", "createdAt": "soon"}],
         {"messages.0.createdAt": ["Enter a date and time like 2026-05-12T15:00:00Z."]}),
        ([{"role": "user", "content": "x", "name": "Ann"}], {"messages.0.name": ["Unknown field."]}),
    ],
)  # fmt: skip
def test_bad_input_appends_nothing(
    messages: Any, errors: dict[str, list[str]], api: Caller, conversation: Conversation
) -> None:
    assert add(api, conversation, messages).errors == errors
    assert Message.objects.count() == 2
