"""Duplicates and conflicts: listing the pairs that a job has found, and carrying out what a person decides."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery

from accounts.access import Scope
from memories import audit
from memories.diff import Diff, diff
from memories.filters import readable, spelt_out
from memories.learning.differences import differences
from memories.models import LISTED, DuplicatePair, Memory
from memories.paging import Order, name_of_list, part_of_list
from memories.review.merging import merge, narrower_visibility
from memories.vocabulary import Visibility
from memoryconsole.errors import Conflict, NotFound
from memoryconsole.finding import find_among

Kind = Literal["duplicate", "conflict"]

NEAREST = Order(("cosine", "id"))
IS_OPEN = spelt_out("state = 'open'")
# At most this many pairs are grouped at once; the others follow when these are decided.
LOOKED_AT = 5_000
COUNTED_UP_TO = 10_000


@dataclass(frozen=True, slots=True)
class Likeness:
    """A pair: a memory that is similar to an older one."""

    pair: DuplicatePair
    memory: Memory
    older: Memory

    @property
    def changes(self) -> Diff:
        return diff(self.older.content, self.memory.content)

    @property
    def is_conflict(self) -> bool:
        return self.pair.kind == DuplicatePair.Kind.CONFLICT

    @property
    def differing(self) -> str:
        return " and ".join(differences(self.older.content, self.memory.content))

    @property
    def merged_visibility(self) -> Visibility:
        return narrower_visibility(self.older, self.memory)


@dataclass(frozen=True, slots=True)
class Cluster:
    """An older memory and those that are similar to it, nearest first."""

    older: Memory
    others: list[Likeness]


def open_pairs(scope: Scope, kind: Kind | None = None) -> QuerySet[DuplicatePair]:
    """Open pairs whose memories are both listed and readable.

    Each memory is looked up by its id. With a join, PostgreSQL would choose a nested loop over all memories if many
    have been added since the last ANALYZE.
    """
    visible = readable(scope).filter(LISTED).values("id")
    rows = DuplicatePair.objects.filter(IS_OPEN, instance=scope.instance)
    rows = rows.filter(first_id=Subquery(visible.filter(id=OuterRef("first_id"))))
    rows = rows.filter(second_id=Subquery(visible.filter(id=OuterRef("second_id"))))
    return rows if kind is None else rows.filter(kind=kind)


def count_pairs(scope: Scope, kind: Kind | None = None) -> int:
    """The number of open pairs, counted up to `COUNTED_UP_TO` and one more."""
    return open_pairs(scope, kind)[: COUNTED_UP_TO + 1].count()


def part_of_pairs(
    scope: Scope, kind: Kind | None, *, limit: int, offset: int = 0, cursor: str = ""
) -> tuple[list[Likeness], str | None]:
    """For programs: pairs from an offset or a cursor on, nearest first, and the cursor of the next ones."""
    name = name_of_list("pairs", scope.instance.id, {"kind": kind})
    rows = open_pairs(scope, kind)
    found, following = part_of_list(rows, NEAREST, name, limit=limit, offset=offset, cursor=cursor)
    return likenesses(scope, found), following


def group_by_oldest(pairs: Iterable[DuplicatePair]) -> list[list[DuplicatePair]]:
    """Groups of pairs that share their older memory, nearest first. Each memory is in one group only.

    All memories of a group are similar to its oldest one: a chain of small steps does not make a group.
    """
    groups: dict[UUID, list[DuplicatePair]] = {}
    grouped: set[UUID] = set()
    for pair in sorted(pairs, key=lambda pair: (pair.first_id, -pair.cosine, pair.second_id)):
        if pair.first_id in grouped or pair.second_id in grouped or pair.second_id in groups:
            continue
        groups.setdefault(pair.first_id, []).append(pair)
        grouped.add(pair.second_id)
    return sorted(groups.values(), key=lambda group: (-group[0].cosine, group[0].first_id))


def groups_of_pairs(scope: Scope, kind: Kind | None = None) -> list[list[DuplicatePair]]:
    return group_by_oldest(NEAREST.sorted(open_pairs(scope, kind))[:LOOKED_AT])


def clusters(scope: Scope, groups: Sequence[Sequence[DuplicatePair]]) -> list[Cluster]:
    by_pair = {each.pair.id: each for each in likenesses(scope, [pair for group in groups for pair in group])}
    found = [[by_pair[pair.id] for pair in group if pair.id in by_pair] for group in groups]
    return [Cluster(others[0].older, others) for others in found if others]


def likenesses(scope: Scope, pairs: Sequence[DuplicatePair]) -> list[Likeness]:
    ids = {id for pair in pairs for id in (pair.first_id, pair.second_id)}
    memories = {memory.id: memory for memory in readable(scope).filter(id__in=ids)} if ids else {}
    audit.note_private_reads(scope, memories.values())
    return [
        Likeness(pair, memories[pair.second_id], memories[pair.first_id])
        for pair in pairs
        if pair.first_id in memories and pair.second_id in memories
    ]


def find_pair(scope: Scope, raw_id: object) -> Likeness:
    """The only way from an outside id to a pair."""
    not_found = "There is no such pair in this instance, or somebody has decided about it."
    found = likenesses(scope, [find_among(open_pairs(scope), raw_id, not_found)])
    if not found:
        raise NotFound(not_found)
    return found[0]


@transaction.atomic
def merge_pair(scope: Scope, raw_id: object, content: str | None = None) -> Memory:
    """Give the older memory `content`, or keep its text, and supersede the newer one by it."""
    scope.require_write()
    found = find_pair(scope, raw_id)
    return merge(scope, found.older.id, found.memory.id, content or found.older.content)


@transaction.atomic
def keep_both(scope: Scope, ids: Sequence[UUID]) -> int:
    """Dismiss these pairs, if they are open; they are not shown again. Return how many."""
    scope.require_write()
    rows = list(open_pairs(scope).filter(id__in=ids).order_by("id"))
    DuplicatePair.objects.filter(instance=scope.instance, id__in=[pair.id for pair in rows]).update(
        state=DuplicatePair.State.DISMISSED
    )
    if rows:
        audit.record(scope, "kept both", [id for pair in rows for id in (pair.first_id, pair.second_id)])
    return len(rows)


def merge_many(scope: Scope, ids: Sequence[UUID]) -> tuple[int, int]:
    """Merge duplicates, but no conflicts, into the older ones, whose text stays. Return how many were and were not."""
    scope.require_write()
    merged = 0
    for id in ids:
        try:
            if not find_pair(scope, id).is_conflict:
                merge_pair(scope, id)
                merged += 1
        except (Conflict, NotFound):
            continue  # somebody else has decided it, or an earlier merge of this loop has
    return merged, len(ids) - merged
