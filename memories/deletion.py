"""Deleting memories for good: the rows, their versions, chunks, vectors and attachments, in one transaction.

Frequencies of words that only they contained go too. What stays is a line in the audit log with ids, actor and time,
and ids and numbers in the recall log, which never contains text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.core.files.storage import default_storage
from django.db import connection, transaction

from accounts.access import Scope
from memories import audit
from memories.expiry import IS_EXPIRED
from memories.filters import Filters, matching, readable
from memories.models import Attachment, Job, Memory
from memories.search.word_frequencies import forget_words
from memories.store import find_memory
from memoryconsole.errors import Conflict, NotFound


@dataclass(frozen=True, slots=True)
class Receipt:
    deleted: int
    versions: int
    chunks: int
    embeddings: int
    attachments: int


def delete_memory(scope: Scope, raw_id: object) -> Receipt:
    return delete_memories(scope, [find_memory(scope, raw_id).id])


def delete_memories(scope: Scope, ids: Sequence[UUID], *, action: str = "deleted") -> Receipt:
    """Delete exactly these memories; if one of them does not exist, delete nothing."""
    scope.require_write()
    wanted = sorted(set(ids))
    with transaction.atomic():
        rows = readable(scope).filter(id__in=wanted).order_by("id").select_for_update()
        found = list(rows.values_list("id", flat=True))
        if found != wanted:
            missing = len(wanted) - len(found)
            raise NotFound(f"{missing} of {len(wanted)} memories are not in this instance. Nothing was deleted.")
        return _delete(scope, wanted, action=action)


def delete_key(scope: Scope, key: str, *, owner: str = "") -> Receipt:
    """Delete what is saved under this key of an owner (or of none), including what it superseded."""
    scope.require_write()
    ids = list(readable(scope).filter(key=key, owner=owner).values_list("id", flat=True)) if key else []
    if not ids:
        raise NotFound(f"Nothing is saved under the key “{key}”.")
    return delete_memories(scope, ids)


def delete_matching(scope: Scope, filters: Filters, *, expected: int) -> Receipt:
    """Delete what matches the filters now, if the number is still the one that the caller saw."""
    scope.require_write()
    with transaction.atomic():
        rows = matching(scope, filters).order_by("id").select_for_update()
        ids = list(rows.values_list("id", flat=True))
        if len(ids) != expected:
            raise stale_expectation(len(ids), expected, "Nothing was deleted.")
        return _delete(scope, ids)


def stale_expectation(matching: int, expected: int, outcome: str) -> Conflict:
    """The number of matching memories has changed since the caller saw it."""
    matches = "1 memory matches" if matching == 1 else f"{matching:,} memories match"
    return Conflict(
        f"{matches} now, not {expected:,}. {outcome}", code="stale_expectation", extra={"matching": matching}
    )


def purge_expired(scope: Scope) -> Receipt:
    """Delete expired memories; nobody could read them any more."""
    with transaction.atomic():
        rows = Memory.objects.filter(IS_EXPIRED, instance=scope.instance)
        ids = list(rows.order_by("id").select_for_update(skip_locked=True).values_list("id", flat=True))
        return _delete(scope, ids, action="expired")


PARTS = """
SELECT (SELECT count(*) FROM memories_memoryversion WHERE instance_id = %(instance)s AND memory_id = ANY(%(ids)s)),
       (SELECT count(*) FROM memories_chunk WHERE instance_id = %(instance)s AND memory_id = ANY(%(ids)s)),
       (SELECT count(*) FROM memories_embedding e JOIN memories_chunk c
               ON c.instance_id = e.instance_id AND c.id = e.chunk_id
        WHERE e.instance_id = %(instance)s AND c.instance_id = %(instance)s AND c.memory_id = ANY(%(ids)s)),
       (SELECT coalesce(array_agg(path), '{}') FROM memories_attachment
        WHERE instance_id = %(instance)s AND memory_id = ANY(%(ids)s))
"""


def parts_of(scope: Scope, ids: Sequence[UUID]) -> Receipt:
    """What deleting these memories would remove."""
    return _parts(scope, ids)[0]


def _parts(scope: Scope, ids: Sequence[UUID]) -> tuple[Receipt, list[str]]:
    """What belongs to these memories, and the paths of their files. There may be hundreds of thousands of ids, so they
    are passed as one array."""
    with connection.cursor() as cursor:
        cursor.execute(PARTS, {"instance": scope.instance.id, "ids": list(ids)})
        versions, chunks, embeddings, paths = cursor.fetchone()
    return Receipt(len(ids), versions, chunks, embeddings, len(paths)), paths


def erase(scope: Scope, ids: list[UUID]) -> Receipt:
    """Delete these memories with everything that belongs to them. The caller writes the audit log."""
    receipt, paths = _parts(scope, ids)
    forget_words(scope, ids)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM memories_memory WHERE instance_id = %s AND id = ANY(%s)", [scope.instance.id, ids])
    transaction.on_commit(lambda: remove_files(paths))
    return receipt


def _delete(scope: Scope, ids: list[UUID], *, action: str = "deleted") -> Receipt:
    receipt = erase(scope, ids)
    if ids:
        audit.record(scope, action, ids)
    return receipt


def files_of(scope: Scope) -> list[str]:
    """The paths of all files of the instance: attachments, and uploads that are not imported yet."""
    attached = Attachment.objects.filter(instance=scope.instance).values_list("path", flat=True)
    uploaded = Job.objects.filter(instance=scope.instance, payload__path__gt="").values_list("payload__path", flat=True)
    return [*attached, *uploaded]


def remove_files(paths: Sequence[str]) -> None:
    """Call it after the commit, because a rollback cannot bring files back."""
    for path in paths:
        default_storage.delete(path)
