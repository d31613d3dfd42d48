"""How recalls look in JSON."""

from typing import Annotated, Any, NotRequired, cast

from typing_extensions import TypedDict

from memories.models import Recall
from memories.presenting import MemoryJson, memory_json
from memories.recall.account import Account, DroppedLine, GivenLine, Numbers, numbers_of
from memories.recall.recalling import Dropped, Given, Recalled
from memories.recall.replay import Replay, Shown
from memories.recall.request import Settings
from memories.recall.why import Why
from memoryconsole.presenting import Id, When, one_of, when

ModeWord = Annotated[str, one_of(["hybrid", "keyword", "recency", "off"])]
WhyWord = Annotated[str, one_of(["found", "recent", "injected"])]
FormWord = Annotated[str, one_of(["content", "summary", "excerpt"])]


class VectorPlaceJson(TypedDict):
    rank: int | None
    similarity: float | None


class KeywordPlaceJson(TypedDict):
    rank: int | None
    score: float | None


class ContextPlaceJson(TypedDict):
    rank: int | None


class MultipliersJson(TypedDict):
    importance: float
    pin: float
    recency: float


class NumbersJson(TypedDict):
    """`place` is the rank in the search results; `score` is the relevance of that place times all multipliers."""

    place: int | None
    vector: VectorPlaceJson
    keyword: KeywordPlaceJson
    context: ContextPlaceJson
    multipliers: MultipliersJson | None
    score: float | None


class PlacedJson(TypedDict):
    """How a memory appears in the block; `rank` is its rank among the found memories."""

    tokens: int
    why: WhyWord
    form: FormWord
    rank: int | None
    score: float | None
    similarity: float | None
    explain: NotRequired[NumbersJson]


class GivenJson(MemoryJson, PlacedJson):
    """`sharedFrom` is the instance that shares the memory, if it belongs to another one."""

    sharedFrom: NotRequired[str]


class DroppedJson(TypedDict):
    id: Id
    reason: str
    detail: str
    explain: NotRequired[NumbersJson]


class SettingsJson(TypedDict):
    limit: int
    threshold: float
    tokenBudget: int
    halfLifeDays: int
    mmrLambda: float
    injectedCap: int


class ProcedureGivenJson(TypedDict):
    id: Id
    name: str


class RecallJson(TypedDict):
    """`tokens` is estimated; `recallId` is null if the instance keeps no log."""

    recallId: Id | None
    context: str
    memories: list[GivenJson]
    dropped: list[DroppedJson]
    tokens: int
    tokenBudget: int
    searchMode: ModeWord
    reason: str | None
    warnings: list[str]
    procedures: list[ProcedureGivenJson]


class LoggedJson(TypedDict):
    id: Id
    instanceId: str
    query: str
    userId: str | None
    conversationId: Id | None
    searchMode: ModeWord
    tokens: int
    memoryIds: list[Id]
    createdAt: When


class ShownJson(PlacedJson):
    """`memory` is null if it was deleted, has expired or is not visible to you; `line` is its line in the block, null
    also if another instance shares the memory and has changed it since."""

    id: Id
    memory: MemoryJson | None
    changed: bool
    line: str | None


class FullLoggedJson(LoggedJson):
    context: str
    complete: bool
    memories: list[ShownJson]
    dropped: list[DroppedJson]
    settings: SettingsJson
    filter: dict[str, Any]
    reason: str | None
    warnings: list[str]


class CauseJson(TypedDict):
    cause: str
    detail: str


class WhyJson(TypedDict):
    """`cause` was decisive; `also` are causes that would have been too, or happened since. `measured` says whether the
    numbers of `explain` are from the recall (`then`) or from a new search (`now`). `memory` is null if it was deleted
    or has expired."""

    memoryId: Id
    memory: MemoryJson | None
    given: bool
    cause: str
    detail: str
    also: list[CauseJson]
    rank: int | None
    tokens: int
    measured: Annotated[str, one_of(["then", "now"])]
    explain: NumbersJson


def recall_json(recalled: Recalled, instance: str, *, explain: bool) -> RecallJson:
    return {
        "recallId": str(recalled.id) if recalled.id else None,
        "context": recalled.context,
        "memories": [_given_json(given, instance, explain=explain) for given in recalled.memories],
        "dropped": [_dropped_json(dropped, explain=explain) for dropped in recalled.dropped],
        "tokens": recalled.tokens,
        "tokenBudget": recalled.settings.token_budget,
        "searchMode": recalled.mode,
        "reason": recalled.reason or None,
        "warnings": recalled.warnings,
        "procedures": [{"id": str(procedure.id), "name": procedure.name} for procedure in recalled.procedures],
    }


def _given_json(given: Given, instance: str, *, explain: bool) -> GivenJson:
    numbers = numbers_of(given.candidate)
    placed = _placed_json(given.tokens, given.why, given.placed.form, given.rank, numbers, explain=explain)
    answer = cast(GivenJson, {**memory_json(given.memory, given.origin.slug if given.origin else instance), **placed})
    if given.origin:
        answer["sharedFrom"] = given.origin.slug
    return answer


def _placed_json(tokens: int, why: str, form: str, rank: int | None, numbers: Numbers, *, explain: bool) -> PlacedJson:
    answer: PlacedJson = {
        "tokens": tokens,
        "why": why,
        "form": form,
        "rank": rank,
        "score": _rounded(numbers.score),
        "similarity": _rounded(numbers.similarity),
    }
    if explain:
        answer["explain"] = numbers_json(numbers)
    return answer


def _dropped_json(dropped: Dropped, *, explain: bool) -> DroppedJson:
    answer: DroppedJson = {"id": str(dropped.memory.id), "reason": dropped.reason, "detail": dropped.detail}
    if explain:
        answer["explain"] = numbers_json(numbers_of(dropped.candidate))
    return answer


def numbers_json(numbers: Numbers) -> NumbersJson:
    multipliers: MultipliersJson | None = None
    if numbers.importance is not None and numbers.pin is not None and numbers.recency is not None:
        multipliers = {"importance": numbers.importance, "pin": numbers.pin, "recency": numbers.recency}
    return {
        "place": numbers.place,
        "vector": {"rank": numbers.vector_rank, "similarity": _rounded(numbers.similarity)},
        "keyword": {"rank": numbers.keyword_rank, "score": _rounded(numbers.keyword_score)},
        "context": {"rank": numbers.context_rank},
        "multipliers": multipliers,
        "score": _rounded(numbers.score),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def logged_json(row: Recall, instance: str) -> LoggedJson:
    return {
        "id": str(row.id),
        "instanceId": instance,
        "query": row.query,
        "userId": row.owner or None,
        "conversationId": str(row.conversation_id) if row.conversation_id else None,
        "searchMode": row.search_mode,
        "tokens": row.tokens,
        "memoryIds": [str(id) for id in row.memory_ids],
        "createdAt": when(row.created_at),
    }


def full_logged_json(row: Recall, account: Account, replayed: Replay, instance: str) -> FullLoggedJson:
    return {
        **logged_json(row, instance),
        "context": replayed.context,
        "complete": replayed.is_complete,
        "memories": [_shown_json(shown, instance) for shown in replayed.memories],
        "dropped": [_dropped_line_json(line) for line in account.dropped],
        "settings": settings_json(account.settings),
        "filter": dict(account.filter),
        "reason": account.reason or None,
        "warnings": list(account.warnings),
    }


def settings_json(settings: Settings) -> SettingsJson:
    return {
        "limit": settings.limit,
        "threshold": settings.threshold,
        "tokenBudget": settings.token_budget,
        "halfLifeDays": settings.half_life_days,
        "mmrLambda": settings.mmr_lambda,
        "injectedCap": settings.injected_cap,
    }


def _shown_json(shown: Shown, instance: str) -> ShownJson:
    line: GivenLine = shown.line
    placed = _placed_json(line.tokens, line.why, line.form, line.rank, line.numbers, explain=True)
    return {
        "id": str(line.memory_id),
        "memory": memory_json(shown.memory, shown.origin.slug if shown.origin else instance) if shown.memory else None,
        "changed": shown.has_changed,
        "line": shown.text or None,
        **placed,
    }


def _dropped_line_json(line: DroppedLine) -> DroppedJson:
    return {
        "id": str(line.memory_id),
        "reason": line.reason,
        "detail": line.detail,
        "explain": numbers_json(line.numbers),
    }


def why_json(found: Why, instance: str) -> WhyJson:
    return {
        "memoryId": str(found.memory_id),
        "memory": memory_json(found.memory, found.origin.slug if found.origin else instance) if found.memory else None,
        "given": found.given,
        "cause": found.cause,
        "detail": found.detail,
        "also": [{"cause": other.cause, "detail": other.detail} for other in found.causes[1:]],
        "rank": found.rank,
        "tokens": found.tokens,
        "measured": found.measured,
        "explain": numbers_json(found.numbers),
    }
