"""/api/v1/memories/{id}/attachments"""

from hashlib import sha256
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile

from instances.models import Instance
from memories.models import Attachment, Memory
from memoryconsole.downloading import MOST
from tests.api.calling import Answer, Caller, signed_in
from tests.factories import make_key, make_memory, make_user

pytestmark = pytest.mark.usefixtures("storage")


@pytest.fixture
def memory(support: Instance) -> Memory:
    return make_memory(support, "Alice sent a picture")


def url(memory: Memory, *parts: str, extra: str = "") -> str:
    path = "/".join([f"/api/v1/memories/{memory.id}/attachments", *parts])
    return f"{path}?instanceId=support-bot{extra}"


def send(api: Caller, memory: Memory, raw: bytes = b"Hello", name: str = "note.txt") -> Answer:
    return api.send("POST", url(memory, extra=f"&name={name}"), raw=raw, type="application/octet-stream")


def test_there_and_back(api: Caller, memory: Memory) -> None:
    answer = send(api, memory, b"<script>alert(1)</script>", "evil.html")
    assert answer.status == 201
    attachment = answer.json["attachment"]
    assert {name: attachment[name] for name in attachment if name not in ("id", "createdAt")} == {
        "memoryId": str(memory.id),
        "name": "evil.html",
        "contentType": "text/plain; charset=utf-8",
        "size": 25,
        "sha256": sha256(b"<script>alert(1)</script>").hexdigest(),
    }
    assert api.get(url(memory)).json == {"attachments": [attachment]}
    got = api.get(url(memory, attachment["id"]))
    assert (got.status, got.body) == (200, b"<script>alert(1)</script>")
    assert got.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert got.headers["Content-Disposition"] == "attachment; filename=\"evil.html\"; filename*=UTF-8''evil.html"
    assert got.headers["X-Content-Type-Options"] == "nosniff"
    assert got.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert "no-store" in got.headers["Cache-Control"]
    assert api.delete(url(memory, attachment["id"])).json == {"deleted": 1}
    assert api.get(url(memory, attachment["id"])).error == (404, "not_found")
    assert api.get(url(memory)).json == {"attachments": []}


def test_files_that_are_missing_take_no_room_from_downloads(api: Caller, memory: Memory) -> None:
    attachment = send(api, memory).json["attachment"]
    default_storage.delete(Attachment.objects.get().path)
    for _ in range(MOST + 1):
        assert api.get(url(memory, attachment["id"])).error == (404, "not_found")


def test_a_form(api: Caller, memory: Memory) -> None:
    file = SimpleUploadedFile("Bild ü.png", b"\x89PNG\r\n\x1a\n")
    answer = Answer(api.client.post(url(memory), {"file": file}, headers=api.headers))
    assert (answer.status, answer.json["attachment"]["contentType"]) == (201, "image/png")
    got = api.get(url(memory, answer.json["attachment"]["id"]))
    assert "filename=\"Bild _.png\"; filename*=UTF-8''Bild%20%C3%BC.png" in got.headers["Content-Disposition"]


def test_bad_input(api: Caller, memory: Memory, settings: Any) -> None:
    settings.ATTACHMENT_MAX_BYTES = 3
    assert send(api, memory, b"Hello").error == (413, "too_large")
    assert list(send(api, memory, name="x" * 300).errors) == ["name"]
    assert Answer(api.client.post(url(memory), {"other": "x"}, headers=api.headers)).error == (400, "invalid")
    assert not Attachment.objects.exists()


def test_only_those_who_may_read_the_memory(api: Caller, support: Instance, sales: Instance) -> None:
    private = make_memory(support, "Bob's", visibility="private", owner="bob")
    id = send(api, private).json["attachment"]["id"]
    assert signed_in(make_user("bob", support)).get(url(private, id)).status == 200
    for caller in (signed_in(make_user("alice", support)), Caller(make_key(sales))):
        assert caller.get(url(private, id)).error == (404, "not_found")
        assert caller.get(url(private)).error == (404, "not_found")
        assert caller.delete(url(private, id)).error == (404, "not_found")
    reader = Caller(make_key(support, read_only=True))
    assert reader.get(url(private, id)).status == 200
    assert send(reader, private).error == (403, "read_only")
    assert Attachment.objects.count() == 1
