"""Earlier texts of a memory: what it said, until when, who changed it and why."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Max, QuerySet
from django.utils import timezone

from accounts.access import Scope
from memories.models import Memory, MemoryVersion
from memoryconsole.errors import NotFound

VERSIONED = frozenset({"content", "summary", "category", "role", "importance", "confidence", "evidence"})
RESTORED = VERSIONED | {"tags"}


def history(scope: Scope, memory: Memory) -> QuerySet[MemoryVersion]:
    """Newest first."""
    return MemoryVersion.objects.filter(instance=scope.instance, memory_id=memory.id).order_by("-number")


def find(scope: Scope, memory: Memory, number: int) -> MemoryVersion:
    version = history(scope, memory).filter(number=number).first()
    if version is None:
        raise NotFound(f"This memory has no version {number}.")
    return version


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a memory changes. An automatic change also has the similarity of the new text and the message it is from."""

    reason: str
    similarity: float | None = None
    source_message_id: UUID | None = None


def keep(
    scope: Scope, memory: Memory, changing: Collection[str], cause: Cause, *, versioned: Collection[str] = VERSIONED
) -> MemoryVersion | None:
    """Store the current state as a version, if a versioned field is about to change."""
    if not any(name in versioned for name in changing):
        return None
    last = history(scope, memory).order_by().aggregate(last=Max("number"))["last"] or 0
    version = _version(scope, memory, last + 1, cause)
    version.save(force_insert=True)
    return version


def keep_many(scope: Scope, memories: Sequence[Memory], cause: Cause) -> None:
    """Store the current state of each memory as a version."""
    earlier = MemoryVersion.objects.filter(instance=scope.instance, memory_id__in=[memory.id for memory in memories])
    last = dict(earlier.order_by().values_list("memory_id").annotate(Max("number")))
    MemoryVersion.objects.bulk_create(_version(scope, memory, last.get(memory.id, 0) + 1, cause) for memory in memories)


def _version(scope: Scope, memory: Memory, number: int, cause: Cause) -> MemoryVersion:
    return MemoryVersion(
        instance=scope.instance,
        memory_id=memory.id,
        number=number,
        key=memory.key,
        content=memory.content,
        summary=memory.summary,
        category=memory.category,
        role=memory.role,
        importance=memory.importance,
        confidence=memory.confidence,
        evidence=memory.evidence,
        tags=memory.tags,
        reason=cause.reason,
        actor=str(scope.actor),
        similarity=cause.similarity,
        source_message_id=cause.source_message_id,
        written_at=memory.updated_at,
        replaced_at=timezone.now(),
    )
