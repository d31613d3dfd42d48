"""Merging two memories that say the same or contradict each other, after a person has decided it.

The first one keeps its id, gets the merged text, and keeps its old text as a version. The other one is deleted if it
was not approved yet; otherwise it is superseded by the first.
"""

from datetime import datetime
from typing import TypeVar
from uuid import UUID

from django.db import transaction

from accounts.access import Scope
from memories import audit, indexing
from memories.attachments import move_attachments
from memories.deletion import delete_memories
from memories.draft import MemoryChanges
from memories.filters import readable
from memories.models import MAX_TAGS, Memory
from memories.store import change, find_memory
from memories.vocabulary import Review, Status, Visibility
from memoryconsole.errors import Conflict, NotFound

MAX_MESSAGES = 100
T = TypeVar("T")
MERGED = "merged with another memory"
NARROWEST_FIRST = (Visibility.PRIVATE, Visibility.INSTANCE, Visibility.TEAM, Visibility.ORG)


@transaction.atomic
def merge(scope: Scope, kept_id: object, other_id: object, content: str, *, reason: str = "") -> Memory:
    """Merge the other memory into the first one, which gets `content`. Raises if they must not be merged."""
    scope.require_write()
    kept, other = _locked(scope, find_memory(scope, kept_id).id, find_memory(scope, other_id).id)
    check_mixable(kept, other)
    reason = reason or MERGED
    takes_key = bool(other.key and not kept.key and other.status == Status.ACTIVE)
    # An unapproved memory is deleted by the merge, and so would be the attachments that are not moved.
    move_attachments(scope, other, kept, all=other.review == Review.PENDING)
    _retire(scope, kept, other, reason)
    changes = MemoryChanges(
        content=content,
        summary=_summary_of(content, kept, other),
        importance=max(kept.importance, other.importance),
        tags=_union(kept.tags, other.tags)[:MAX_TAGS],
        source_conversation_id=kept.source_conversation_id or other.source_conversation_id,
        source_message_ids=_union(kept.source_message_ids, other.source_message_ids)[:MAX_MESSAGES],
        pinned=kept.pinned or other.pinned,
        visibility=narrower_visibility(kept, other),
        expires_at=_later(kept.expires_at, other.expires_at),
        key=other.key if takes_key else kept.key,
        supersede_reason=reason,
    )
    merged = change(scope, kept.id, changes)
    audit.record(scope, "merged", [kept.id, other.id])
    return merged


def check_mixable(kept: Memory, other: Memory) -> None:
    """Refuse to merge memories of different owners, or a private one with one that others may read."""
    if kept.id == other.id:
        raise Conflict("A memory cannot be merged with itself.", code="not_mixable")
    if Status.SUPERSEDED in (kept.status, other.status):
        raise Conflict("One of the two is superseded already.", code="not_mixable")
    private = Visibility.PRIVATE
    if kept.owner != other.owner or (kept.visibility == private) != (other.visibility == private):
        raise Conflict("The two belong to different people, so they cannot become one.", code="not_mixable")


def narrower_visibility(first: Memory, second: Memory) -> Visibility:
    """The visibility of a merged memory: only those who may read both may read it."""
    return next(each for each in NARROWEST_FIRST if each in (first.visibility, second.visibility))


def _retire(scope: Scope, kept: Memory, other: Memory, reason: str) -> None:
    """Delete or supersede the other memory, and move conflicts with it to the kept one."""
    conflicts = Memory.objects.filter(instance=scope.instance, conflicts_with_id=other.id)
    conflicts.exclude(id=kept.id).update(conflicts_with_id=kept.id)
    Memory.objects.filter(instance=scope.instance, id=kept.id, conflicts_with_id=other.id).update(
        conflicts_with_id=None
    )
    if other.review == Review.PENDING:
        delete_memories(scope, [other.id])
        return
    Memory.objects.filter(pk=other.pk).update(
        status=Status.SUPERSEDED, superseded_by_id=kept.id, supersede_reason=reason, conflicts_with_id=None
    )
    indexing.hide(scope, other)


def _locked(scope: Scope, kept_id: UUID, other_id: UUID) -> tuple[Memory, Memory]:
    rows = readable(scope).filter(id__in=[kept_id, other_id]).order_by("id").select_for_update()
    found = {memory.id: memory for memory in rows}
    if not found.keys() >= {kept_id, other_id}:
        raise NotFound("One of the two has just been deleted.")
    return found[kept_id], found[other_id]


def _union(first: list[T], second: list[T]) -> list[T]:
    return list(dict.fromkeys([*first, *second]))


def _summary_of(content: str, *memories: Memory) -> str:
    """The summary of the memory that already had exactly this text, because recall may use it in place of the text."""
    return next((memory.summary for memory in memories if memory.content == content), "")


def _later(first: datetime | None, second: datetime | None) -> datetime | None:
    """The later of two expiry times; None means never."""
    return max(first, second) if first and second else None
