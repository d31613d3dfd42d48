"""The attachments and sources on /memory/<id>"""

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from conversations.models import Message
from instances.models import Instance
from memories import attachments
from memories.models import Attachment, Memory
from tests.factories import make_conversation, make_memory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("storage")]


@pytest.fixture
def memory(support: Instance) -> Memory:
    return make_memory(support, "Alice sent a picture")


def upload(client: Client, memory: Memory, raw: bytes = b"Hello", name: str = "note <b>.txt") -> Any:
    file = SimpleUploadedFile(name, raw)
    url = f"/memory/{memory.id}/attachments?instance=support-bot"
    return client.post(url, {"file": file}, follow=True)


def html(response: Any) -> str:
    text: str = response.content.decode()
    return text


def test_attach_download_and_remove(alice: Client, memory: Memory, storage: Path) -> None:
    page = html(upload(alice, memory))
    assert "Attached “note _b_.txt”." in page
    attachment = Attachment.objects.get()
    url = f"/memory/{memory.id}/attachments/{attachment.id}"
    assert f'href="{url}?instance=support-bot"' in page
    assert "text/plain, 5\xa0bytes" in page
    response = alice.get(f"{url}?instance=support-bot")
    assert b"".join(response.streaming_content) == b"Hello"
    assert response["Content-Disposition"].startswith("attachment;")
    assert response["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert "Removed “note _b_.txt”." in html(alice.post(f"{url}/delete?instance=support-bot", follow=True))
    assert not Attachment.objects.exists()


def test_a_refusal_is_not_scrolled_out_of_sight(alice: Client, memory: Memory, settings: Any) -> None:
    """It is said on top of the page, far above the files of a long memory."""
    assert upload(alice, memory).redirect_chain[-1][0].endswith("#attachments")
    settings.ATTACHMENT_MAX_BYTES = 3
    assert upload(alice, memory).redirect_chain[-1][0] == f"/memory/{memory.id}?instance=support-bot"


def test_what_cannot_be_attached(alice: Client, memory: Memory, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"/memory/{memory.id}/attachments?instance=support-bot"
    assert "Choose a file first." in html(alice.post(url, {}, follow=True))
    settings.ATTACHMENT_MAX_BYTES = 3
    assert "A file may have at most 3 bytes." in html(upload(alice, memory))
    settings.ATTACHMENT_MAX_BYTES = 1024 * 1024
    assert "A file may have at most 1 MB." in html(upload(alice, memory, bytes(1024 * 1024 + 1)))
    monkeypatch.setattr(attachments, "MOST", 0)
    assert "A memory has at most 0 attachments." in html(upload(alice, memory, b"x"))
    assert not Attachment.objects.exists()


def test_strangers(alice: Client, mallory: Client, memory: Memory, sales: Instance) -> None:
    upload(alice, memory)
    url = f"/memory/{memory.id}/attachments/{Attachment.objects.get().id}"
    for slug in ("support-bot", "sales-bot"):
        assert mallory.get(f"{url}?instance={slug}").status_code == 404
        assert mallory.post(f"{url}/delete?instance={slug}").status_code == 404
        assert mallory.post(f"/memory/{memory.id}/attachments?instance={slug}").status_code == 404
    assert Attachment.objects.count() == 1


def test_links_to_several_messages(alice: Client, support: Instance) -> None:
    talk = make_conversation(support, "I like <tea>", "Noted", "Green tea")
    first, _, third = Message.objects.filter(conversation_id=talk.id).order_by("position")
    memory = make_memory(
        support, "Likes green tea", sourceConversationId=str(talk.id), sourceMessageIds=[str(third.id), str(first.id)]
    )
    page = html(alice.get(f"/memory/{memory.id}?instance=support-bot"))
    for message in (first, third):
        assert (
            f'href="/conversations/{talk.id}?instance=support-bot&amp;message={message.id}#message-{message.id}"'
            in page
        )
    assert "User, message 1: I like &lt;tea&gt;" in page
    assert "message 2" not in page
