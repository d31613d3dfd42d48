import re
from html import unescape
from uuid import uuid4

import pytest
from django.test import Client

from conversations.models import Conversation, Message
from instances.models import Instance
from tests.factories import make_conversation, make_memory

pytestmark = pytest.mark.django_db


def url(conversation: Conversation, query: str = "") -> str:
    return f"/conversations/{conversation.id}?instance=support-bot{query}"


def test_it_shows_what_was_said_and_what_is_remembered(alice: Client, support: Instance) -> None:
    conversation = make_conversation(
        support, "I live in Munich.", "Noted.", title="Moving", userId="dora", channel="chat"
    )
    said = Message.objects.get(instance=support, position=1)
    memory = make_memory(
        support, "Dora lives in Munich", sourceConversationId=str(conversation.id), sourceMessageIds=[str(said.id)]
    )

    page = alice.get(url(conversation)).content.decode()

    assert page.index("I live in Munich.") < page.index("Noted.")
    assert f'id="message-{said.id}"' in page
    assert f'href="/memory/{memory.id}?instance=support-bot"' in page
    assert f"message={said.id}#message-{said.id}" in page
    assert (
        f'href="/conversations/{conversation.id}?instance=support-bot'
        in alice.get(f"/memory/{memory.id}?instance=support-bot").content.decode()
    )


def test_a_memory_written_from_it_is_shown_with_what_is_remembered_of_it(alice: Client, support: Instance) -> None:
    conversation = make_conversation(support, "I live in Munich.")
    [link] = re.findall(r'href="(/memory/new\?[^"]*)"', alice.get(url(conversation)).content.decode())
    form = alice.get(unescape(link)).context["form"]
    values = {field.html_name: field.value() for field in form if field.value() is not None}
    response = alice.post(unescape(link), values | {"content": "Dora lives in Munich"})
    assert response.url == f"/memory?conversationId={conversation.id}&instance=support-bot"
    assert "Dora lives in Munich" in alice.get(response.url).content.decode()


def test_private_memories_of_others_are_not_there(alice: Client, superadmin: Client, support: Instance) -> None:
    conversation = make_conversation(support, "hello")
    make_memory(support, "Private", sourceConversationId=str(conversation.id), visibility="private", owner="emil")
    assert "Private" not in alice.get(url(conversation)).content.decode()
    assert "Private" in superadmin.get(url(conversation)).content.decode()


def test_a_long_conversation_has_pages(alice: Client, support: Instance) -> None:
    conversation = make_conversation(support, *(f"Said as number {n:03}." for n in range(1, 451)))

    def numbers(query: str) -> list[int]:
        return [message.position for message in alice.get(url(conversation, query)).context["page"].rows]

    assert numbers("") == list(range(1, 201))
    assert numbers("&page=2") == list(range(201, 401))
    assert numbers("&page=99") == list(range(401, 451))
    message = Message.objects.get(instance=support, position=222)
    assert numbers(f"&message={message.id}") == list(range(201, 401))
    assert numbers(f"&message={message.id}&page=3") == list(range(401, 451))
    assert numbers(f"&message={uuid4()}") == list(range(1, 201))
    assert numbers("&message=nonsense&page=x") == list(range(1, 201))
    fragment = alice.get(url(conversation, "&page=2"), headers={"HX-Request": "true"}).content.decode()
    assert "Said as number 222." in fragment
    assert "<html" not in fragment
    assert "Per page" not in fragment


def test_nothing_said_yet(alice: Client, support: Instance) -> None:
    assert "Nothing was said yet" in alice.get(url(make_conversation(support))).content.decode()


def test_text_is_escaped(alice: Client, support: Instance) -> None:
    page = alice.get(url(make_conversation(support, "<script>alert(1)</script>", title="<b>"))).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_conversation_of_another_instance_is_not_found(
    alice: Client, mallory: Client, superadmin: Client, client: Client, support: Instance, sales: Instance
) -> None:
    conversation = make_conversation(sales, "Confidential")

    assert alice.get(url(conversation)).status_code == 404
    assert superadmin.get(url(conversation)).status_code == 404
    assert alice.get(f"/conversations/{conversation.id}?instance=sales-bot").status_code == 404
    assert alice.get(f"/conversations/{uuid4()}?instance=support-bot").status_code == 404
    assert alice.get("/conversations/nonsense?instance=support-bot").status_code == 404
    assert client.get(url(conversation)).url.startswith("/login?next=/conversations/")
    assert mallory.get(f"/conversations/{conversation.id}?instance=sales-bot").status_code == 200


def test_a_message_of_another_conversation_does_not_choose_the_page(alice: Client, support: Instance) -> None:
    other = make_conversation(support, "elsewhere")
    conversation = make_conversation(support, *(f"Number {n}" for n in range(1, 250)))
    message = Message.objects.get(instance=support, conversation_id=other.id)
    assert alice.get(url(conversation, f"&message={message.id}&page=2")).context["page"].number == 2
    assert alice.get(url(conversation, f"&message={message.id}")).context["page"].number == 1
