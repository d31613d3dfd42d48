"""/conversations/try"""

from typing import Any

import pytest
from django.test import Client

from instances.models import Instance
from memories.forgetting import forget
from memories.models import AuditEntry, Job, Memory
from tests.domain.looking import in_another_connection
from tests.factories import make_conversation, make_memory, scope_of
from tests.openai_server import OpenAIServer
from tests.working import waiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("one_minute")]

URL = "/conversations/try?instance=support-bot"
FACT = {"content": "Dora lives in Munich", "category": "fact", "importance": 7}


def test_a_pasted_text(alice: Client, support: Instance, openai: OpenAIServer) -> None:
    make_memory(support, "Dora likes tea", owner="dora")
    text = "user: Dora likes tea\nuser: I moved to <b>Munich</b>\nassistant: Noted"
    page = alice.post(URL, {"text": text, "user": "dora"}).content.decode()
    assert "2 facts" in page
    assert "I moved to &lt;b&gt;Munich&lt;/b&gt;" in page
    assert ">created<" in page
    assert ">seen<" in page
    assert "15 tokens" in page
    assert (Memory.objects.count(), waiting()) == (1, [])
    assert not Job.objects.exists()


def test_a_conversation(alice: Client, support: Instance, openai: OpenAIServer) -> None:
    conversation = make_conversation(support, "I moved to Munich", "Noted", title="Moving")
    before = (Memory.objects.count(), Job.objects.count(), len(waiting()))
    form = alice.get(f"{URL}&conversation={conversation.id}").content.decode()
    assert f'value="{conversation.id}" selected' in form
    page = alice.post(URL, {"conversation": str(conversation.id)}, headers={"HX-Request": "true"}).content.decode()
    assert "I moved to Munich" in page
    assert "<html" not in page
    assert (Memory.objects.count(), Job.objects.count(), len(waiting())) == before
    link = f'href="/conversations/try?instance=support-bot&amp;conversation={conversation.id}"'
    assert link in alice.get(f"/conversations/{conversation.id}?instance=support-bot").content.decode()


def test_nothing_worth_remembering(alice: Client, support: Instance, openai: OpenAIServer) -> None:
    openai.script({"memories": []})
    assert "Nothing worth remembering" in alice.post(URL, {"text": "Hello"}).content.decode()


def test_nothing_given_or_too_much(alice: Client, support: Instance, openai: OpenAIServer) -> None:
    assert "Paste something that was said" in alice.post(URL, {"text": " "}).content.decode()
    assert "at most 50000 characters" in alice.post(URL, {"text": "x" * 50_001}).content.decode()
    assert openai.requests == []


def test_without_a_key_it_says_so(alice: Client, support: Instance) -> None:
    page = alice.get(URL).content.decode()
    assert "no OpenAI or Azure key reaches this instance" in page
    assert "/instances/support-bot/settings#openai-key" in page
    assert "disabled" in page
    assert "No OpenAI or Azure key reaches this instance." in alice.post(URL, {"text": "Hello"}).content.decode()


def test_what_goes_wrong_is_said(alice: Client, support: Instance, openai: OpenAIServer) -> None:
    openai.script("no", "no")
    assert "its answer is unusable: it is not JSON" in alice.post(URL, {"text": "Hello"}).content.decode()
    openai.fail("unauthorized")
    assert "does not accept the key" in alice.post(URL, {"text": "Hello"}).content.decode()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("answer", [{"memories": [FACT]}, {"memories": []}])
def test_a_conversation_that_is_forgotten_meanwhile(
    alice: Client, support: Instance, openai: OpenAIServer, answer: Any
) -> None:
    conversation = make_conversation(support, "I live in Munich", "Noted", userId="dora")
    openai.script(answer)
    openai.meanwhile(lambda: in_another_connection(forget, scope_of(support), "dora"))
    response = alice.post(URL, {"conversation": str(conversation.id)}, headers={"HX-Request": "true"})
    assert response.status_code == 200
    assert "This conversation has just been deleted." in response.content.decode()
    assert Memory.objects.count() == 0


def test_a_conversation_that_was_deleted_before_it_is_tried(
    alice: Client, support: Instance, openai: OpenAIServer
) -> None:
    conversation = make_conversation(support, "I live in Munich", "Noted")
    address = f"{URL}&conversation={conversation.id}"
    assert alice.get(address).status_code == 200
    conversation.delete()
    page = alice.post(address, {"conversation": str(conversation.id)}, headers={"HX-Request": "true"})
    assert (page.status_code, openai.requests) == (200, [])
    assert "This conversation is not there to choose any more." in page.content.decode()
    assert "I like tea" in alice.post(address, {"text": "user: I like tea"}).content.decode()


def test_not_too_often(alice: Client, support: Instance, openai: OpenAIServer) -> None:
    for _ in range(10):
        alice.post(URL, {"text": "Hello"})
    asked = len(openai.chats())
    assert "try again in a moment" in alice.post(URL, {"text": "Hello"}).content.decode()
    assert len(openai.chats()) == asked


def test_somebody_elses_private_memory_is_not_shown(
    alice: Client, superadmin: Client, support: Instance, openai: OpenAIServer
) -> None:
    secret = make_memory(support, "Emil has a secret plan", owner="emil", visibility="private")
    body = {"text": "user: Emil has a secret plan", "user": "emil"}
    page = alice.post(URL, body).content.decode()
    assert "A private memory of somebody" in page
    assert "/memory/" not in page.split('id="outcome"')[1]
    noted = AuditEntry.objects.filter(action="read_private")
    assert not noted.exists()
    assert "/memory/" in superadmin.post(URL, body).content.decode().split('id="outcome"')[1]
    assert noted.get().memory_ids == [secret.id]


def test_access(alice: Client, support: Instance, sales: Instance) -> None:
    theirs = make_conversation(sales, "Confidential", "Yes")
    assert alice.get(f"{URL}&conversation={theirs.id}").status_code == 404
    assert alice.get("/conversations/try?instance=sales-bot").status_code == 404
    page = alice.post(URL, {"conversation": str(theirs.id)}).content.decode()
    assert "This conversation is not there to choose any more." in page
