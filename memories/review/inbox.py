"""The review inbox: extracted memories that a person has to approve, because they are doubtful or a contradiction.

Until it is approved, a memory is in no list, search or recall. Approving it takes effect at once, because its chunks
and vectors are already stored. Rejecting deletes it for good.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from accounts.access import Scope
from memories import audit
from memories.deletion import Receipt, delete_memories
from memories.diff import Diff, diff
from memories.draft import MemoryChanges
from memories.filters import readable, spelt_out
from memories.learning.differences import differences
from memories.models import Memory
from memories.paging import Order, Page, name_of_list, page_of, part_of_list
from memories.review.merging import merge, narrower_visibility
from memories.review.pairing import remember_both
from memories.search.similar import cosines
from memories.store import change, find_memory
from memories.vocabulary import Review, Status, Visibility
from memoryconsole.errors import Conflict

Why = Literal["conflict", "importance"]

NEWEST = Order(("id",))
COUNTED_UP_TO = 1_000
IS_WAITING = spelt_out("review = 'pending'")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A memory that waits for review, and why."""

    memory: Memory
    threshold: int
    other: Memory | None = None
    similarity: float | None = None

    @property
    def is_conflict(self) -> bool:
        return self.memory.conflicts_with_id is not None

    @property
    def reason(self) -> str:
        if self.is_conflict:
            return self._conflict
        if self.memory.importance < self.threshold:
            return (
                f"Importance {self.memory.importance} is below {self.threshold}, so it is not approved automatically."
            )
        return "Somebody should look at it before it is used."

    @property
    def _conflict(self) -> str:
        kinds = differences(self.other.content, self.memory.content) if self.other else []
        if self.other and not kinds:
            return "It says nearly the same as another memory."
        return "It may contradict another memory" + (f": they differ in {' and '.join(kinds)}." if kinds else ".")

    @property
    def changes(self) -> Diff:
        """The difference between the known memory and the new one."""
        return diff(self.other.content if self.other else "", self.memory.content)

    @property
    def merged_visibility(self) -> Visibility:
        return narrower_visibility(self.other or self.memory, self.memory)


def waiting(scope: Scope, why: Why | None = None) -> QuerySet[Memory]:
    rows = readable(scope).filter(IS_WAITING, status=Status.ACTIVE)
    return rows if why is None else rows.filter(conflicts_with_id__isnull=why != "conflict")


def count_waiting(scope: Scope) -> int:
    """Counted up to `COUNTED_UP_TO` and one more, which is enough for a badge."""
    return waiting(scope)[: COUNTED_UP_TO + 1].count()


def page_waiting(scope: Scope, why: Why | None, *, number: int, size: int, anchor: str = "") -> Page[Memory]:
    rows = waiting(scope, why)
    return page_of(rows, NEWEST, number=number, size=size, total=rows.count(), anchor=anchor)


def part_waiting(
    scope: Scope, why: Why | None, *, limit: int, offset: int = 0, cursor: str = ""
) -> tuple[list[Memory], str | None]:
    """For programs: memories from an offset or a cursor on, and the cursor of the next ones."""
    name = name_of_list("waiting", scope.instance.id, {"why": why})
    return part_of_list(waiting(scope, why), NEWEST, name, limit=limit, offset=offset, cursor=cursor)


def with_reasons(scope: Scope, memories: Sequence[Memory]) -> list[Waiting]:
    """Each memory with the one it may contradict, if the reader may see that, and the similarity of the two."""
    ids = {memory.conflicts_with_id for memory in memories if memory.conflicts_with_id}
    others: dict[UUID | None, Memory] = {other.id: other for other in readable(scope).filter(id__in=ids)} if ids else {}
    pairs = [(memory.id, id) for memory in memories if (id := memory.conflicts_with_id) and id in others]
    near = {id: cosine for (id, _), cosine in cosines(scope, pairs).items()} if pairs else {}
    audit.note_private_reads(scope, [*memories, *others.values()])
    threshold = scope.instance.auto_approve_importance
    return [
        Waiting(memory, threshold, others.get(memory.conflicts_with_id), near.get(memory.id)) for memory in memories
    ]


def find_waiting(scope: Scope, raw_id: object) -> Waiting:
    memory = find_memory(scope, raw_id)
    if memory.review != Review.PENDING or memory.status != Status.ACTIVE:
        raise Conflict("Somebody has reviewed this memory already.", code="reviewed")
    return with_reasons(scope, [memory])[0]


@transaction.atomic
def approve(scope: Scope, raw_id: object, changes: MemoryChanges | None = None) -> Memory:
    """Approve a memory, and apply the changes if there are any."""
    scope.require_write()
    id = find_waiting(scope, raw_id).memory.id
    if not approve_many(scope, [id]):
        raise Conflict("Somebody has reviewed this memory already.", code="reviewed")
    return change(scope, id, changes) if changes and changes.changed_fields() else find_memory(scope, id)


@transaction.atomic
def approve_many(scope: Scope, ids: Sequence[UUID], *, action: str = "approved") -> int:
    """Approve those that still wait, and return how many. In a conflict, both memories are kept."""
    scope.require_write()
    still_waiting = _lock(scope, ids)
    rows = Memory.objects.filter(instance=scope.instance, id__in=still_waiting)
    rows.update(review=Review.APPROVED, conflicts_with_id=None)
    if still_waiting:
        audit.record(scope, action, still_waiting)
    return len(still_waiting)


@transaction.atomic
def keep_both(scope: Scope, raw_id: object) -> Memory:
    """Approve a memory that may contradict another one, and keep both."""
    scope.require_write()
    found = find_waiting(scope, raw_id)
    if not found.is_conflict:
        raise Conflict("It contradicts no other memory.", code="no_conflict")
    approve_many(scope, [found.memory.id], action="kept both")
    if found.other is not None:
        remember_both(scope, found.memory.id, found.other.id)
    return find_memory(scope, found.memory.id)


@transaction.atomic
def merge_waiting(scope: Scope, raw_id: object, content: str | None = None) -> Memory:
    """Give the memory it may contradict `content`, or the text of this one, and delete this one."""
    scope.require_write()
    found = find_waiting(scope, raw_id)
    if found.other is None:
        raise Conflict("There is no other memory to merge it with.", code="no_conflict")
    return merge(scope, found.other.id, found.memory.id, content or found.memory.content, reason="merged in review")


@transaction.atomic
def reject(scope: Scope, ids: Sequence[UUID]) -> Receipt:
    """Delete those that still wait, for good."""
    scope.require_write()
    still_waiting = _lock(scope, ids)
    return delete_memories(scope, still_waiting, action="rejected") if still_waiting else Receipt(0, 0, 0, 0, 0)


def _lock(scope: Scope, ids: Sequence[UUID]) -> list[UUID]:
    rows = waiting(scope).filter(id__in=ids).order_by("id").select_for_update()
    return list(rows.values_list("id", flat=True))
