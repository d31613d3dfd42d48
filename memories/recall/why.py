"""Why a memory was recalled, or why not: what was decided then, and where it stands now if nobody looked at it then."""

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
from memories.recall.replay import GONE, Known, shared_among
from memories.recall.request import as_plain_words
from memories.recall.selection import is_near, number_considered, similarities, telling_words, too_far
from memories.search.hybrid import Mode, search
from memories.vocabulary import Review, Status, Visibility
from memoryconsole.errors import NotFound
from memoryconsole.ids import parse_id
from memoryconsole.inputs import read
from memoryconsole.presenting import when

# As deep as the lists of search go together.
AS_DEEP_AS_SEARCH = 300


@dataclass(frozen=True, slots=True)
class Cause:
    """What decided, in a word and in a sentence."""

    cause: str
    detail: str


@dataclass(frozen=True, slots=True)
class Why:
    memory_id: UUID
    memory: Memory | None
    """None when it has been deleted or has expired: nobody reads it any more."""
    given: bool
    causes: Sequence[Cause]
    """The decisive one first."""
    numbers: Numbers = NO_NUMBERS
    measured: str = "then"
    """Whether the numbers are from the recall itself, or from the same search done again now."""
    rank: int | None = None
    tokens: int = 0
    origin: Instance | None = None
    """The instance that shares it, when it is not this one's own."""

    @property
    def cause(self) -> str:
        return self.causes[0].cause

    @property
    def detail(self) -> str:
        return self.causes[0].detail


def why(scope: Scope, account: Account, raw_memory_id: object) -> Why:
    """Not for transactions: the search may have to be done again."""
    id = parse_id(raw_memory_id)
    memory, origin = _there(scope, id) if id else GONE
    since = _since(scope, id, memory) if id else []
    if id is None or (memory is None and not since):
        raise NotFound("There is no such memory in this instance.")
    explained = _explained(scope, account, id, memory, since)
    shown = None if since else memory
    note_private_reads(scope, [shown] if shown else [])
    return replace(explained, memory=shown, origin=origin)


def _explained(scope: Scope, account: Account, id: UUID, memory: Memory | None, since: Sequence[Cause]) -> Why:
    fate = account.fates.get(id)
    if isinstance(fate, GivenLine):
        causes = [Cause(fate.why, GIVEN[fate.why]), *since]
        return Why(id, memory, True, causes, fate.numbers, rank=fate.rank, tokens=fate.tokens)
    if fate:
        also = [Cause(fate.cut.cause, fate.cut.detail)] if fate.cut else []
        capped = _over_cap(account, memory) if fate.reason != "budget" else []
        causes = [Cause(fate.reason, fate.detail), *also, *capped, *since]
        return Why(id, memory, False, causes, fate.numbers)
    barred = _barred(account, memory) if memory else None
    if barred:
        return Why(id, memory, False, list(dict.fromkeys([barred, *since])))
    if since or memory is None:
        return Why(id, memory, False, since)
    cause, numbers = _out_of_sight(scope, account, memory)
    return Why(id, memory, False, [cause, *_over_cap(account, memory)], numbers, measured="now")


GIVEN = {
    "found": "It was found for what was asked.",
    "recent": "It was among the pinned and the newest, which are given when nothing is found.",
    "injected": "Its role puts it into every prompt.",
}


def _there(scope: Scope, id: UUID) -> Known:
    """Of this instance, also if it has expired, or shared by another one."""
    own = once_readable(scope).filter(id=id).first()
    return (own, None) if own else shared_among(scope, [id]).get(id, GONE)


def _since(scope: Scope, id: UUID, memory: Memory | None) -> list[Cause]:
    """What has taken it out of everybody's reach; nothing of a memory that can be read, or never was there."""
    if memory:
        return [_expired(memory.expires_at)] if memory.expires_at and memory.expires_at <= timezone.now() else []
    if Memory.objects.filter(instance=scope.instance, id=id).exists():
        return []
    ends = AuditEntry.objects.filter(instance=scope.instance, action__in=ENDS, memory_ids__contains=[id])
    end = ends.order_by("-id").values_list("action", flat=True).first()
    return [ENDS[end]] if end else []


def _expired(moment: datetime) -> Cause:
    return Cause("expired", f"It expired at {when(moment)}.")


# As the audit log calls them.
ENDS = {
    "deleted": Cause("deleted", "It has been deleted since."),
    "forgotten": Cause("deleted", "It has been deleted since."),
    "expired": Cause("expired", "It has expired since."),
}


def _over_cap(account: Account, memory: Memory | None) -> list[Cause]:
    if not account.is_capped or memory is None or memory.role not in ROLES:
        return []
    cap = account.settings.injected_cap
    detail = f"Its role belongs into every prompt, but only the first {cap} by role, pin and age do."
    return [Cause("injected_cap", detail)]


def _barred(account: Account, memory: Memory) -> Cause | None:
    """What keeps it from being considered at all, whatever is asked."""
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


def _out_of_sight(scope: Scope, account: Account, memory: Memory) -> tuple[Cause, Numbers]:
    """It may be recalled, but was not even looked at: see how far away it is."""
    if account.mode == "recency":
        limit = account.settings.limit
        return Cause("rank", f"Nothing was found, and it is not among the pinned or newest {limit}."), NO_NUMBERS
    numbers = _numbers_now(scope, account, memory)
    lowest = account.settings.lowest_similarity(scope.instance)
    telling = telling_words(lengths(scope).all)
    near = is_near(numbers.similarity, numbers.keyword_score, lowest=lowest, telling=telling)
    if account.mode == "hybrid" and not near:
        return Cause("threshold", too_far(numbers.similarity, lowest)), numbers
    looked_at = number_considered(account.settings)
    where = f"at place {numbers.place}" if numbers.place else f"not even among the first {AS_DEEP_AS_SEARCH}"
    return Cause("rank", f"Search finds it {where}; the first {looked_at} were considered."), numbers


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
