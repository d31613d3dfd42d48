"""Files kept with a memory, in Django's storage: read by whoever may read the memory, gone when it goes.

What is stored is named by an id of ours, never by the name somebody sent, so no name can lead anywhere else. The type
is taken from the bytes; what could be run by a browser is plain text or nothing in particular.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from typing import IO, Any, cast

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.access import Scope
from memories import audit
from memories.file_types import BYTES, type_of
from memories.filters import readable
from memories.models import Attachment, Memory
from memories.store import find_memory
from memoryconsole.errors import Invalid, NotFound
from memoryconsole.finding import find_among
from memoryconsole.ids import parse_id, uuid7
from memoryconsole.streams import Limited, safe_name

FOLDER = "files"
MOST = 20
# A file is stored before its row: one that has just come is no orphan.
SETTLED = timedelta(hours=1)
PART = 64 * 1024


class _Examined(Limited):
    """The file as it goes by: its first bytes and its hash."""

    def __init__(self, stream: Any, most: int) -> None:
        super().__init__(stream, most)
        self.start = b""
        self.hash = sha256()

    def read(self, size: int = -1) -> bytes:
        part = super().read(size)
        self.start = (self.start + part)[:BYTES] if len(self.start) < BYTES else self.start
        self.hash.update(part)
        return part


def attachments_of(scope: Scope, memory: Memory) -> QuerySet[Attachment]:
    """The first one first."""
    return Attachment.objects.filter(instance=scope.instance, memory_id=memory.id).order_by("id")


def find_attachment(scope: Scope, raw_memory_id: object, raw_id: object) -> Attachment:
    """The only way from outside ids to a file, through the memory that decides who may read it."""
    files = attachments_of(scope, find_memory(scope, raw_memory_id))
    return find_among(files, raw_id, "There is no such attachment in this instance.")


def attach(scope: Scope, raw_memory_id: object, stream: Any, *, name: str) -> Attachment:
    scope.require_write()
    memory = find_memory(scope, raw_memory_id)
    _refuse_more(scope, memory)
    id = uuid7()
    path = f"{FOLDER}/{scope.instance.id}/{id}"
    with _stored(path, stream) as file, transaction.atomic():
        # Whoever deletes the memory waits for this row and its file, or has been faster, and there is no memory.
        if readable(scope).filter(id=memory.id).select_for_update(no_key=True).first() is None:
            raise NotFound("This memory has just been deleted.")
        _refuse_more(scope, memory)
        attachment = Attachment.objects.create(
            instance=scope.instance,
            id=id,
            memory_id=memory.id,
            name=safe_name(name),
            content_type=type_of(file.start),
            size=file.size_read,
            sha256=file.hash.digest(),
            path=path,
            created_at=timezone.now(),
        )
        audit.record(scope, "attached", [memory.id], attachmentId=str(id))
    return attachment


def _refuse_more(scope: Scope, memory: Memory) -> None:
    if attachments_of(scope, memory).count() >= MOST:
        raise Invalid({"file": [f"A memory has at most {MOST} attachments. Remove one first."]})


@contextmanager
def _stored(path: str, stream: Any) -> Iterator[_Examined]:
    """The file in the storage, unless what is done with it fails."""
    file = _Examined(stream, settings.ATTACHMENT_MAX_BYTES)
    try:
        default_storage.save(path, File(cast(IO[bytes], file)))
        yield file
    except BaseException:
        default_storage.delete(path)
        raise


def parts_of_file(attachment: Attachment) -> Iterator[bytes]:
    """Its bytes, in parts; opened at once, so that a missing file is an error and no empty download."""
    try:
        file = default_storage.open(attachment.path, "rb")
    except FileNotFoundError:
        raise NotFound("The file of this attachment is missing.") from None
    return _parts(file)


def _parts(file: "File[bytes]") -> Iterator[bytes]:
    with file:
        while part := file.read(PART):
            yield part


def move_attachments(scope: Scope, source: Memory, target: Memory, *, all: bool) -> None:
    """As many as there is room for, the first ones first, or all of them. Part of the caller's transaction, which holds
    both rows."""
    room = None if all else max(MOST - attachments_of(scope, target).count(), 0)
    moving = list(attachments_of(scope, source).values_list("id", flat=True)[:room])
    if moving:
        Attachment.objects.filter(instance=scope.instance, id__in=moving).update(memory_id=target.id)
        audit.record(scope, "attachments_moved", [source.id, target.id], attachmentIds=[str(id) for id in moving])


def delete_attachment(scope: Scope, raw_memory_id: object, raw_id: object) -> None:
    scope.require_write()
    attachment = find_attachment(scope, raw_memory_id, raw_id)
    path = attachment.path
    with transaction.atomic():
        Attachment.objects.filter(pk=attachment.pk).delete()
        audit.record(scope, "attachment_removed", [attachment.memory_id], attachmentId=str(attachment.id))
        transaction.on_commit(lambda: default_storage.delete(path))


def remove_orphans() -> int:
    """Files without a row, as a crash between the two may leave them."""
    removed = 0
    for folder, names in _folders():
        instance = parse_id(folder)
        known = set(Attachment.objects.filter(instance_id=instance).values_list("path", flat=True)) if instance else ()
        for path in (f"{FOLDER}/{folder}/{name}" for name in names):
            if path not in known and default_storage.get_modified_time(path) < timezone.now() - SETTLED:
                default_storage.delete(path)
                removed += 1
    return removed


def _folders() -> Iterator[tuple[str, list[str]]]:
    if default_storage.exists(FOLDER):
        for folder in default_storage.listdir(FOLDER)[0]:
            yield folder, default_storage.listdir(f"{FOLDER}/{folder}")[1]
