"""The account of a recall: every memory that was considered, whether it was given or dropped, and why.

The log stores it packed, as lists without names, because there is one for every turn of every conversation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from memories.recall.request import Settings
from memories.recall.selection import Candidate, Cut

NO_ROOM = "There was not enough room left in the token budget."


class Numbers(NamedTuple):
    """A memory's ranks and scores from search, and its multipliers and final score."""

    place: int | None = None
    vector_rank: int | None = None
    similarity: float | None = None
    keyword_rank: int | None = None
    keyword_score: float | None = None
    context_rank: int | None = None
    importance: float | None = None
    pin: float | None = None
    recency: float | None = None
    score: float | None = None


NO_NUMBERS = Numbers()


def numbers_of(candidate: Candidate | None) -> Numbers:
    if candidate is None:
        return NO_NUMBERS
    return Numbers(
        place=candidate.place,
        vector_rank=candidate.vector_rank,
        similarity=candidate.similarity,
        keyword_rank=candidate.keyword_rank,
        keyword_score=candidate.keyword_score,
        context_rank=candidate.context_rank,
        importance=candidate.multipliers.importance,
        pin=candidate.multipliers.pin,
        recency=candidate.multipliers.recency,
        score=candidate.score,
    )


@dataclass(frozen=True, slots=True)
class GivenLine:
    """A memory in the block. `why` is found, recent or injected; `form` is content, summary or excerpt."""

    memory_id: UUID
    why: str
    form: str
    tokens: int
    rank: int | None = None
    numbers: Numbers = NO_NUMBERS
    passage: tuple[int, int] | None = None
    """Where an excerpt begins and ends in the memory's content."""


@dataclass(frozen=True, slots=True)
class DroppedLine:
    """A memory that was considered and left out. `reason` is the cause as a code, `detail` as a sentence."""

    memory_id: UUID
    reason: str
    detail: str
    numbers: Numbers = NO_NUMBERS
    cut: Cut | None = None
    """Why the selection dropped it, if `reason` is something else."""


@dataclass(frozen=True)
class Account:
    query: str
    user_id: str
    mode: str
    reason: str
    tokens: int
    at: datetime
    settings: Settings
    filter: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    is_capped: bool = False
    """Whether there were more memories to inject than the instance's limit."""
    has_summary: bool = False
    procedures: Sequence[UUID] = ()
    given: Sequence[GivenLine] = ()
    """In the order of the block."""
    dropped: Sequence[DroppedLine] = ()

    @cached_property
    def line_of(self) -> Mapping[UUID, GivenLine | DroppedLine]:
        lines: list[GivenLine | DroppedLine] = [*self.dropped, *self.given]
        return {line.memory_id: line for line in lines}


def packed(account: Account) -> dict[str, Any]:
    return {
        "settings": asdict(account.settings),
        "filter": dict(account.filter),
        "reason": account.reason,
        "warnings": list(account.warnings),
        "capped": account.is_capped,
        "summary": account.has_summary,
        "procedures": [id.hex for id in account.procedures],
        "given": [
            [
                line.memory_id.hex,
                line.why,
                line.form,
                line.tokens,
                line.rank,
                line.passage,
                *_rounded(line.numbers),
            ]
            for line in account.given
        ],
        "dropped": [
            [
                line.memory_id.hex,
                line.reason,
                "" if line.detail == NO_ROOM else line.detail,
                *_rounded(line.numbers),
            ]
            for line in account.dropped
        ],
        "cut": {line.memory_id.hex: [line.cut.cause, line.cut.detail] for line in account.dropped if line.cut},
    }


def account_of(packed: Mapping[str, Any], *, query: str, user_id: str, mode: str, tokens: int, at: datetime) -> Account:
    cuts = packed.get("cut", {})
    return Account(
        query=query,
        user_id=user_id,
        mode=mode,
        reason=packed["reason"],
        tokens=tokens,
        at=at,
        settings=Settings(**packed["settings"]),
        filter=packed["filter"],
        warnings=packed["warnings"],
        is_capped=packed["capped"],
        has_summary=packed["summary"],
        procedures=[UUID(id) for id in packed["procedures"]],
        given=[_given(*line) for line in packed["given"]],
        dropped=[_dropped(cuts.get(line[0]), *line) for line in packed["dropped"]],
    )


def _rounded(numbers: Numbers) -> list[float | int | None]:
    """Empty for a memory that search did not find."""
    if numbers == NO_NUMBERS:
        return []
    return [round(value, 4) if isinstance(value, float) else value for value in numbers]


def _given(
    id: str, why: str, form: str, tokens: int, rank: int | None, passage: Sequence[int] | None, *numbers: Any
) -> GivenLine:
    return GivenLine(
        UUID(id), why, form, tokens, rank, Numbers(*numbers), (passage[0], passage[1]) if passage else None
    )


def _dropped(cut: Sequence[Any] | None, id: str, reason: str, detail: str, *numbers: Any) -> DroppedLine:
    return DroppedLine(UUID(id), reason, detail or NO_ROOM, Numbers(*numbers), Cut(*cut) if cut else None)
