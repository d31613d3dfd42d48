"""Making one memory out of two that say the same, or contradict each other. A person decides, nothing by itself.

The first one lives on under its id with the merged text, and keeps what it said before as a version. The other one, if
nobody had approved it yet, is deleted; otherwise it is superseded by the first, with its history.
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
    """`content` becomes what the first of the two says. Raises when they must not be mixed."""
    scope.require_write()
    kept, other = _locked(scope, find_memory(scope, kept_id).id, find_memory(scope, other_id).id)
    check_mixable(kept, other)
    reason = reason or MERGED
    takes_key = bool(other.key and not kept.key and other.status == Status.ACTIVE)
    # What waits is deleted by the merge, and would take along whatever stayed behind.
    move_attachments(scope, other, kept, all=other.review == Review.PENDING)
    _let_go(scope, kept, other, reason)
    changes = MemoryChanges(
        content=content,
        summary=_summary_of(content, kept, other),
        importance=max(kept.importance, other.importance),
        tags=_both(kept.tags, other.tags)[:MAX_TAGS],
        source_message_ids=_both(kept.source_message_ids, other.source_message_ids)[:MAX_MESSAGES],
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
    """What is somebody's own must not become part of what others read, or of what is somebody else's."""
    if kept.id == other.id:
        raise Conflict("A memory cannot be merged with itself.", code="not_mixable")
    if Status.SUPERSEDED in (kept.status, other.status):
        raise Conflict("One of the two is superseded already.", code="not_mixable")
    private = Visibility.PRIVATE
    if kept.owner != other.owner or (kept.visibility == private) != (other.visibility == private):
        raise Conflict("The two belong to different people, so they cannot become one.", code="not_mixable")


def narrower_visibility(first: Memory, second: Memory) -> Visibility:
    """What a merged memory has: whoever could not read both does not read what became of them."""
    return next(each for each in NARROWEST_FIRST if each in (first.visibility, second.visibility))


def _let_go(scope: Scope, kept: Memory, other: Memory, reason: str) -> None:
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


def _both(first: list[T], second: list[T]) -> list[T]:
    return list(dict.fromkeys([*first, *second]))


def _summary_of(content: str, *memories: Memory) -> str:
    """What somebody wrote of this very text; recall gives a summary in the place of its text."""
    return next((memory.summary for memory in memories if memory.content == content), "")


def _later(first: datetime | None, second: datetime | None) -> datetime | None:
    """The later end of two; None has no end."""
    return max(first, second) if first and second else None
