"""Files attached to a memory, in Django's storage. Who may read the memory may read them; they are deleted with it.

The path in the storage is made from our own id and never from the name that was sent, so no name can lead outside the
folder. The content type is detected from the bytes; anything a browser could run is served as plain text or as unknown.
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
from accounts.events import was_deleted
from instances.models import Instance
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
# A file is stored before its row, so a file that is younger than this may still get one.
SETTLED = timedelta(hours=1)
PART = 64 * 1024


class _Examined(Limited):
    """A stream that keeps the first bytes and the hash of what is read from it."""

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
    """Oldest first."""
    return Attachment.objects.filter(instance=scope.instance, memory_id=memory.id).order_by("id")


def find_attachment(scope: Scope, raw_memory_id: object, raw_id: object) -> Attachment:
    """Look up an attachment by ids from outside. The memory decides who may read it."""
    files = attachments_of(scope, find_memory(scope, raw_memory_id))
    return find_among(files, raw_id, "There is no such attachment in this instance.")


def attach(scope: Scope, raw_memory_id: object, stream: Any, *, name: str) -> Attachment:
    scope.require_write()
    memory = find_memory(scope, raw_memory_id)
    _refuse_more(scope, memory)
    id = uuid7()
    path = f"{FOLDER}/{scope.instance.id}/{id}"
    with _stored(path, stream) as file, transaction.atomic():
        # Lock the memory: a deletion either waits and then finds this file, or was faster and there is no memory.
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
    """Store the file, and remove it again if the block fails."""
    file = _Examined(stream, settings.ATTACHMENT_MAX_BYTES)
    try:
        default_storage.save(path, File(cast(IO[bytes], file)))
        yield file
    except BaseException:
        default_storage.delete(path)
        raise


def parts_of_file(attachment: Attachment) -> Iterator[bytes]:
    """The file's bytes in parts. It is opened right away: a missing file is then a 404 instead of an empty download."""
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
    """Move the oldest attachments, as many as there is room for, or `all`. The caller has locked both memories."""
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
    """Delete files that have no row, which a crash may leave behind. Return how many.

    Files of an instance that this database has never had stay. They may be those of a database that is still to be
    restored, or of another one that was used with the same directory.
    """
    removed = 0
    for folder, names in _folders():
        id = parse_id(folder)
        instance = Instance.objects.filter(id=id).first() if id else None
        if instance is None and not was_deleted(folder):
            continue
        known = set(Attachment.objects.filter(instance=instance).values_list("path", flat=True)) if instance else ()
        for path in (f"{FOLDER}/{folder}/{name}" for name in names):
            if path not in known and default_storage.get_modified_time(path) < timezone.now() - SETTLED:
                default_storage.delete(path)
                removed += 1
    return removed


def _folders() -> Iterator[tuple[str, list[str]]]:
    if default_storage.exists(FOLDER):
        for folder in default_storage.listdir(FOLDER)[0]:
            yield folder, default_storage.listdir(f"{FOLDER}/{folder}")[1]
