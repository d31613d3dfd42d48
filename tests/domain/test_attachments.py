"""Attachments: stored under our own names, typed by their bytes, deleted with the memory."""

import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.access import SHELL, Actor, Scope
from instances.models import Instance
from instances.store import delete_instance
from memories import attachments, jobs
from memories.attachments import attach, attachments_of, delete_attachment, find_attachment, parts_of_file
from memories.deletion import delete_memory
from memories.file_types import type_of
from memories.models import Attachment, AuditEntry, Memory
from memoryconsole.errors import Invalid, NotAllowed, NotFound, TooLarge
from memoryconsole.ids import uuid7
from memoryconsole.streams import LONGEST_NAME, safe_name
from tests.domain.looking import files
from tests.factories import make_instance, make_memory, scope_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("storage")]


@pytest.fixture
def memory(bot: Instance) -> Memory:
    return make_memory(bot, "Alice sent a picture")


def keep(memory: Memory, raw: bytes = b"Hello", name: str = "note.txt") -> Attachment:
    return attach(scope_of(memory.instance), memory.id, io.BytesIO(raw), name=name)


def test_what_is_kept(memory: Memory, storage: Path) -> None:
    attachment = keep(memory, b"Hello" * 50_000, "../../etc/passwd")
    assert (attachment.name, attachment.size) == ("passwd", 250_000)
    (file,) = files(storage)
    assert file == storage / "files" / str(memory.instance_id) / str(attachment.id)
    assert file.stat().st_mode & 0o077 == 0
    assert b"".join(parts_of_file(attachment)) == b"Hello" * 50_000
    entry = AuditEntry.objects.latest("id")
    assert (entry.action, entry.memory_ids) == ("attached", [memory.id])
    assert "passwd" not in str(entry.detail)


@pytest.mark.parametrize(
    ("start", "type"),
    [
        (b"\x89PNG\r\n\x1a\n...", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF\x00\x00\x00\x00WEBP", "image/webp"),
        (b"RIFF\x00\x00\x00\x00WAVE", "audio/wav"),
        (b"12345678WEBP\x00", "application/octet-stream"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
        (b"<html><script>alert(1)</script>", "text/plain; charset=utf-8"),
        (b"<svg onload=alert(1)>", "text/plain; charset=utf-8"),
        ("Grüße".encode(), "text/plain; charset=utf-8"),
        (("x" * 4095 + "ü").encode()[:4096], "text/plain; charset=utf-8"),
        (b"\xff\xfe", "application/octet-stream"),
        (b"MZ\x90\x00", "application/octet-stream"),
        (b"", "application/octet-stream"),
    ],
)
def test_types_by_their_bytes(start: bytes, type: str) -> None:
    assert type_of(start) == type


@given(st.text(max_size=300))
def test_no_name_leads_anywhere(raw: str) -> None:
    name = safe_name(raw)
    assert 0 < len(name) <= LONGEST_NAME
    assert not set(name) & set('/\\\x00\r\n"')
    assert not name.startswith(".")


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("C:\\temp\\report.pdf", "report.pdf"),
        ("..", "file"),
        ("", "file"),
        ("a\u202egpj.exe", "a_gpj.exe"),
        ("x" * 300 + ".pdf", "x" * 146 + ".pdf"),
        ("Grüße aus Köln.txt", "Grüße aus Köln.txt"),
        ("gh" + "p_" + "x" * 36 + " (old).txt", "[redacted GitHub token] (old).txt"),
    ],
)
def test_names(raw: str, name: str) -> None:
    assert safe_name(raw) == name


def test_too_large_leaves_nothing(memory: Memory, storage: Path, settings: Any) -> None:
    settings.ATTACHMENT_MAX_BYTES = 10
    keep(memory, b"x" * 10)
    with pytest.raises(TooLarge, match="at most 10 bytes"):
        keep(memory, b"x" * 11)
    assert (Attachment.objects.count(), len(files(storage))) == (1, 1)


def test_too_many(memory: Memory, storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "MOST", 2)
    keep(memory)
    keep(memory)
    with pytest.raises(Invalid, match="at most 2 attachments"):
        keep(memory)
    assert len(files(storage)) == 2


def test_removed_by_itself(memory: Memory, storage: Path, django_capture_on_commit_callbacks: Any) -> None:
    one, two = keep(memory, b"one"), keep(memory, b"two")
    with django_capture_on_commit_callbacks(execute=True):
        delete_attachment(scope_of(memory.instance), memory.id, one.id)
    assert [path.read_bytes() for path in files(storage)] == [b"two"]
    assert list(attachments_of(scope_of(memory.instance), memory)) == [two]


def test_removed_with_the_memory_and_with_the_instance(
    bot: Instance, memory: Memory, storage: Path, django_capture_on_commit_callbacks: Any
) -> None:
    keep(memory)
    keep(make_memory(bot, "Another"))
    with django_capture_on_commit_callbacks(execute=True):
        assert delete_memory(scope_of(bot), memory.id).attachments == 1
    assert len(files(storage)) == 1
    with django_capture_on_commit_callbacks(execute=True):
        delete_instance(Scope(bot, SHELL))
    assert files(storage) == []


def test_orphans_go(memory: Memory, storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = keep(memory)
    lost = storage / "files" / str(memory.instance_id) / "lost"
    lost.write_bytes(b"x")
    jobs.remove_forgotten_uploads(0)
    assert len(files(storage)) == 2, "what has just come may still be getting its row"
    monkeypatch.setattr(attachments, "SETTLED", timedelta(0))
    jobs.remove_forgotten_uploads(0)
    assert [path.name for path in files(storage)] == [str(kept.id)]


def test_files_of_a_deleted_instance_go_but_not_those_of_another_database(
    bot: Instance, memory: Memory, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(memory)
    elsewhere = storage / "files" / str(uuid7()) / "x"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(b"x")
    delete_instance(Scope(bot, SHELL))
    assert len(files(storage)) == 2, "as if a crash had come before the files were removed"
    monkeypatch.setattr(attachments, "SETTLED", timedelta(0))
    jobs.remove_forgotten_uploads(0)
    assert files(storage) == [elsewhere]


def test_who_may(bot: Instance, memory: Memory) -> None:
    attachment = keep(memory)
    other = make_memory(bot, "Another")
    foreign = make_instance()
    for scope, memory_id, id in [
        (scope_of(foreign), memory.id, attachment.id),
        (scope_of(bot), other.id, attachment.id),
        (scope_of(bot), memory.id, other.id),
        (scope_of(bot), "x", attachment.id),
        (scope_of(bot), memory.id, "../x"),
    ]:
        with pytest.raises(NotFound):
            find_attachment(scope, memory_id, id)
    reader = Scope(bot, Actor(kind="key", name="reader", read_only=True))
    assert find_attachment(reader, memory.id, attachment.id) == attachment
    with pytest.raises(NotAllowed):
        attach(reader, memory.id, io.BytesIO(b"x"), name="x")
    with pytest.raises(NotAllowed):
        delete_attachment(reader, memory.id, attachment.id)
    private = make_memory(bot, "Bob's", visibility="private", owner="bob")
    hidden = keep(private)
    with pytest.raises(NotFound):
        find_attachment(Scope(bot, Actor(kind="user", name="alice")), private.id, hidden.id)


def test_a_file_that_is_missing(memory: Memory, storage: Path) -> None:
    attachment = keep(memory)
    files(storage)[0].unlink()
    with pytest.raises(NotFound, match="missing"):
        parts_of_file(attachment)
