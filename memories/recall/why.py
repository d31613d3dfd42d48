"""Why a memory was recalled or not: from the log, or from a new search if it was not considered at the time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from accounts.access import Scope
from instances.models import Instance
from memories.audit import note_private_reads
from memories.filters import Filters, conditions, once_readable
from memories.listing import lengths
from memories.models import AuditEntry, Memory
from memories.recall.account import NO_NUMBERS, Account, GivenLine, Numbers
from memories.recall.injected import ROLES
from memories.recall.replay import NOT_FOUND, MemoryAndOrigin, shared_among
from memories.recall.request import as_plain_words
from memories.recall.selection import is_near, number_considered, similarities, strong_keyword_score, too_far
from memories.search.hybrid import Mode, search
from memories.vocabulary import Review, Status, Visibility
from memoryconsole.errors import NotFound
from memoryconsole.ids import parse_id
from memoryconsole.inputs import read
from memoryconsole.presenting import when

# Search lists have no more hits than this together.
AS_DEEP_AS_SEARCH = 300


@dataclass(frozen=True, slots=True)
class Cause:
    """What decided, as a code and as a sentence."""

    cause: str
    detail: str


@dataclass(frozen=True, slots=True)
class Why:
    memory_id: UUID
    memory: Memory | None
    """None if it has been deleted or has expired: then nobody may read it."""
    given: bool
    causes: Sequence[Cause]
    """The decisive cause first."""
    numbers: Numbers = NO_NUMBERS
    measured: str = "then"
    """`then` if the numbers are from the recall itself, `now` if they are from a new search."""
    rank: int | None = None
    tokens: int = 0
    origin: Instance | None = None
    """The instance that shares the memory, if it belongs to another one."""

    @property
    def cause(self) -> str:
        return self.causes[0].cause

    @property
    def detail(self) -> str:
        return self.causes[0].detail


def why(scope: Scope, account: Account, raw_memory_id: object) -> Why:
    """Must not be called in a transaction, because it may search again."""
    id = parse_id(raw_memory_id)
    memory, origin = _find(scope, id) if id else NOT_FOUND
    ends = _end_of(scope, id, memory) if id else []
    if id is None or (memory is None and not ends):
        raise NotFound("There is no such memory in this instance.")
    explained = _explained(scope, account, id, memory, ends)
    shown = None if ends else memory
    note_private_reads(scope, [shown] if shown else [])
    return replace(explained, memory=shown, origin=origin)


def _explained(scope: Scope, account: Account, id: UUID, memory: Memory | None, ends: Sequence[Cause]) -> Why:
    line = account.line_of.get(id)
    if isinstance(line, GivenLine):
        causes = [Cause(line.why, GIVEN[line.why]), *ends]
        return Why(id, memory, True, causes, line.numbers, rank=line.rank, tokens=line.tokens)
    if line:
        also = [Cause(line.cut.cause, line.cut.detail)] if line.cut else []
        capped = _over_cap(account, memory) if line.reason != "budget" else []
        causes = [Cause(line.reason, line.detail), *also, *capped, *ends]
        return Why(id, memory, False, causes, line.numbers)
    excluded = _excluded(account, memory) if memory else None
    since = _changed_since(scope, account, id)
    if excluded:
        return Why(id, memory, False, list(dict.fromkeys([excluded, *ends, *since])))
    if ends or memory is None:
        return Why(id, memory, False, ends)
    cause, numbers = _not_considered(scope, account, memory)
    causes = [*since, cause] if cause.cause == "changed" else [cause, *_over_cap(account, memory), *since]
    return Why(id, memory, False, causes, numbers, measured="now")


GIVEN = {
    "found": "It was found for what was asked.",
    "recent": "It was among the pinned and the newest, which are given when nothing is found.",
    "injected": "Its role puts it into every prompt.",
}


def _find(scope: Scope, id: UUID) -> MemoryAndOrigin:
    """A memory of this instance, even if it has expired, or one that another instance shares."""
    own = once_readable(scope).filter(id=id).first()
    return (own, None) if own else shared_among(scope, [id]).get(id, NOT_FOUND)


def _end_of(scope: Scope, id: UUID, memory: Memory | None) -> list[Cause]:
    """How the memory expired or was deleted; empty if it can still be read, or never existed."""
    if memory:
        return [_expired(memory.expires_at)] if memory.expires_at and memory.expires_at <= timezone.now() else []
    if Memory.objects.filter(instance=scope.instance, id=id).exists():
        return []
    entries = AuditEntry.objects.filter(instance=scope.instance, action__in=ENDS, memory_ids__contains=[id])
    action = entries.order_by("-id").values_list("action", flat=True).first()
    return [ENDS[action]] if action else []


def _expired(moment: datetime) -> Cause:
    return Cause("expired", f"It expired at {when(moment)}.")


# By the action in the audit log.
ENDS = {
    "deleted": Cause("deleted", "It has been deleted since."),
    "forgotten": Cause("deleted", "It has been deleted since."),
    "expired": Cause("expired", "It has expired since."),
}


def _changed_since(scope: Scope, account: Account, id: UUID) -> list[Cause]:
    """What was done to the memory first after the recall: what it was until then is not known."""
    entries = AuditEntry.objects.filter(instance=scope.instance, action__in=CHANGES, memory_ids__contains=[id])
    # Sorted here, because with a LIMIT PostgreSQL may read the log in order instead of using the index of memory ids.
    later = sorted(entries.filter(created_at__gt=account.at).values_list("created_at", "action"))
    return [Cause("changed", f"It was {CHANGES[action]} afterwards, at {when(at)}.") for at, action in later[:1]]


# By the action in the audit log.
CHANGES = {
    "approved": "approved",
    "kept both": "approved",
    "changed": "changed",
    "restored": "restored",
    "merged": "merged",
    "superseded": "superseded",
    "used_again": "taken into use again",
}


def _over_cap(account: Account, memory: Memory | None) -> list[Cause]:
    if not account.is_capped or memory is None or memory.role not in ROLES:
        return []
    cap = account.settings.injected_cap
    detail = f"Its role belongs into every prompt, but only the first {cap} by role, pin and age do."
    return [Cause("injected_cap", detail)]


def _excluded(account: Account, memory: Memory) -> Cause | None:
    """Why the memory could not be considered at all, whatever the question."""
    if account.mode == "off":
        return Cause("off", account.reason)
    if memory.created_at > account.at:
        return Cause("later", f"It was remembered only afterwards, at {when(memory.created_at)}.")
    if memory.visibility == Visibility.PRIVATE and memory.owner != account.user_id:
        asked_for = f"“{account.user_id}”" if account.user_id else "nobody in particular"
        return Cause("visibility", f"It is private to “{memory.owner}”, and was asked for by {asked_for}.")
    if memory.expires_at and memory.expires_at <= account.at:
        return _expired(memory.expires_at)
    if memory.status == Status.SUPERSEDED:
        return Cause("superseded", "Something newer has replaced it.")
    if memory.review == Review.PENDING:
        return Cause("unreviewed", "It waits for somebody to review it.")
    return _filtered(account, memory)


def _filtered(account: Account, memory: Memory) -> Cause | None:
    for name, value in account.filter.items():
        if not Memory.objects.filter(conditions(read(Filters, {name: value})), pk=memory.pk).exists():
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            return Cause("filter", f"It does not match the filter {name}={shown}.")
    return None


def _not_considered(scope: Scope, account: Account, memory: Memory) -> tuple[Cause, Numbers]:
    """The memory could have been recalled but was not considered: search again to see where it is."""
    if account.mode == "recency":
        limit = account.settings.limit
        return Cause("rank", f"Nothing was found, and it was not among the pinned or newest {limit}."), NO_NUMBERS
    numbers = _numbers_now(scope, account, memory)
    lowest = account.settings.lowest_similarity(scope.instance)
    strong = strong_keyword_score(lengths(scope).all)
    near = is_near(numbers.similarity, numbers.keyword_score, lowest=lowest, strong=strong)
    if account.mode == "hybrid" and not near:
        return Cause("threshold", too_far(numbers.similarity, lowest)), numbers
    considered = number_considered(account.settings)
    if numbers.place and numbers.place <= considered:
        return Cause("changed", f"Search finds it now, at place {numbers.place}, but did not then."), numbers
    where = f"at place {numbers.place}" if numbers.place else f"not even among the first {AS_DEEP_AS_SEARCH}"
    return Cause("rank", f"Search finds it {where}; the first {considered} were considered."), numbers


def _numbers_now(scope: Scope, account: Account, memory: Memory) -> Numbers:
    reading = scope.reading_for(account.user_id)
    text = as_plain_words(account.query)
    filters = read(Filters, account.filter)
    mode: Mode = "keyword" if account.mode == "keyword" else "hybrid"
    hits = search(reading, text, filters, mode=mode, limit=AS_DEEP_AS_SEARCH).hits
    place, found = next(
        ((place, hit.found) for place, hit in enumerate(hits, start=1) if hit.memory.id == memory.id), (None, None)
    )
    cosines = similarities(reading, text, [memory.id]) if account.mode == "hybrid" else {}
    if found is None:
        return Numbers(similarity=cosines.get(memory.id))
    return Numbers(
        place=place,
        vector_rank=found.vector_rank,
        similarity=cosines.get(memory.id, found.similarity),
        keyword_rank=found.keyword_rank,
        keyword_score=found.keyword_score,
        context_rank=found.context_rank,
    )
