"""GET /api/v1/conversations/{id}/context and POST /api/v1/conversations/{id}/close"""

from typing import Any

from conversations.models import Conversation
from instances.models import Instance
from tests.api.calling import Answer, Caller
from tests.factories import make_conversation


def context(api: Caller, conversation: Conversation) -> Any:
    return api.get(f"/api/v1/conversations/{conversation.id}/context?instanceId=support-bot").json


def close(api: Caller, conversation: Conversation, **body: Any) -> Answer:
    return api.post(f"/api/v1/conversations/{conversation.id}/close", {"instanceId": "support-bot", **body})


def test_the_plain_window(api: Caller, support: Instance) -> None:
    conversation = make_conversation(support, *(f"Message {n}" for n in range(1, 31)))
    found = context(api, conversation)
    assert [message["position"] for message in found["messages"]] == list(range(11, 31))
    assert (found["summary"], found["summarisedThrough"]) == (None, 0)
    assert found["conversation"]["id"] == str(conversation.id)


def test_a_summary_and_what_came_after_it(api: Caller, support: Instance) -> None:
    conversation = make_conversation(support, *(f"Message {n}" for n in range(1, 51)))
    Conversation.objects.filter(pk=conversation.pk).update(summary="They talked.", summarised_through=25)
    found = context(api, conversation)
    assert (found["summary"], found["summarisedThrough"]) == ("They talked.", 25)
    assert [message["position"] for message in found["messages"]] == list(range(26, 51))


def test_closing_and_speaking_again(api: Caller, support: Instance) -> None:
    conversation = make_conversation(support, "Hello", "Hi")
    first = close(api, conversation)
    assert first.status == 200
    assert first.json["conversation"]["closedAt"]
    assert close(api, conversation).json == first.json, "closing twice changes nothing"
    body = {"instanceId": "support-bot", "messages": [{"role": "user", "content": "One more thing"}]}
    api.post(f"/api/v1/conversations/{conversation.id}/messages", body)
    assert context(api, conversation)["conversation"]["closedAt"] is None


def test_unknown_names_are_refused(api: Caller, support: Instance) -> None:
    conversation = make_conversation(support)
    assert list(close(api, conversation, reason="done").errors) == ["reason"]
