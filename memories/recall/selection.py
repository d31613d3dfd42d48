"""Selecting memories for a prompt from the search results: by similarity threshold, score and diversity."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.db import connection
from django.utils import timezone

from accounts.access import Scope
from instances.models import Instance
from memories.asking import Unavailable
from memories.embedding.embedder import embed_query
from memories.filters import Filters, matching
from memories.listing import lengths
from memories.models import Memory
from memories.recall.diversity import choose, most_alike, words_of
from memories.recall.ranking import Multipliers, age_in_days, multipliers, relevance
from memories.recall.request import Settings
from memories.search.hybrid import Hit, Mode, search
from memories.search.query import read_query
from memoryconsole.postgres.halfvec import HalfVector

# This many search results are considered for each memory that may be chosen.
CANDIDATES_PER_PLACE = 3
FEWEST_CANDIDATES = 24

RecallMode = Literal["hybrid", "keyword", "recency", "off"]
Cause = Literal["threshold", "rank", "decay", "mmr"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A search hit with everything that decides whether it is chosen."""

    memory: Memory
    place: int
    multipliers: Multipliers
    similarity: float | None = None
    vector_rank: int | None = None
    keyword_rank: int | None = None
    keyword_score: float | None = None
    context_rank: int | None = None
    passage: str = ""
    """The chunk of a long memory that was found."""
    origin: Instance | None = None
    """The instance that shares the memory, if it belongs to another one."""

    @property
    def score(self) -> float:
        return relevance(self.place) * self.multipliers.product

    @property
    def score_without_decay(self) -> float:
        return relevance(self.place) * self.multipliers.without_recency


@dataclass(frozen=True, slots=True)
class Cut:
    """Why a candidate was not chosen."""

    cause: Cause
    detail: str


@dataclass(frozen=True, slots=True)
class Selection:
    mode: RecallMode
    reason: str = ""
    chosen: list[Candidate] = field(default_factory=list)
    """Best first."""
    cut: list[tuple[Candidate, Cut]] = field(default_factory=list)


def select(scope: Scope, text: str, filters: Filters, settings: Settings, *, mode: Mode = "hybrid") -> Selection:
    """The memories that fit the text, or the pinned and newest ones if none does."""
    found = search(scope, text, filters, mode=mode, limit=number_considered(settings))
    now = timezone.now()
    candidates = [_candidate(hit, place, settings, now) for place, hit in enumerate(found.hits, start=1)]
    by_words_alone = found.mode == "keyword"
    near, far = (candidates, []) if by_words_alone else _near_and_far(scope, text, candidates, settings)
    if not near:
        reason = found.reason or _nothing_found(text, candidates)
        return replace(_newest(scope, filters, settings, now), reason=reason, cut=far)
    chosen, passed_over = _chosen(near, settings)
    used: RecallMode = "keyword" if by_words_alone else "hybrid"
    return Selection(used, found.reason, chosen, [*passed_over, *far])


def number_considered(settings: Settings) -> int:
    return max(FEWEST_CANDIDATES, CANDIDATES_PER_PLACE * settings.limit)


def _candidate(hit: Hit, place: int, settings: Settings, now: datetime) -> Candidate:
    found = hit.found
    return Candidate(
        memory=hit.memory,
        place=place,
        multipliers=multipliers_of(hit.memory, settings, now),
        similarity=found.similarity,
        vector_rank=found.vector_rank,
        keyword_rank=found.keyword_rank,
        keyword_score=found.keyword_score,
        context_rank=found.context_rank,
        passage=found.content or "",
        origin=hit.origin,
    )


def multipliers_of(memory: Memory, settings: Settings, now: datetime) -> Multipliers:
    return multipliers(
        importance=memory.importance,
        pinned=memory.pinned,
        role=memory.role,
        age_days=age_in_days(memory.updated_at, memory.last_seen_at, now=now),
        half_life_days=settings.half_life_days,
    )


def _near_and_far(
    scope: Scope, text: str, candidates: Sequence[Candidate], settings: Settings
) -> tuple[list[Candidate], list[tuple[Candidate, Cut]]]:
    lowest = settings.lowest_similarity(scope.instance)
    strong = strong_keyword_score(lengths(scope).all)
    # The similarity only matters where the keyword score alone is not strong enough.
    unknown = [one.memory.id for one in candidates if one.similarity is None and (one.keyword_score or 0) < strong]
    cosines = similarities(scope, text, unknown)
    near: list[Candidate] = []
    far: list[tuple[Candidate, Cut]] = []
    for candidate in candidates:
        cosine = cosines.get(candidate.memory.id)
        one = candidate if cosine is None else replace(candidate, similarity=cosine)
        if is_near(one.similarity, one.keyword_score, lowest=lowest, strong=strong):
            near.append(one)
        else:
            far.append((one, Cut("threshold", too_far(one.similarity, lowest))))
    return near, far


def is_near(similarity: float | None, keyword_score: float | None, *, lowest: float, strong: float) -> bool:
    """Whether it is similar enough or has a strong keyword score. Without a vector, any keyword score is enough."""
    if similarity is None:
        return keyword_score is not None
    return similarity >= lowest or (keyword_score or 0) >= strong


def strong_keyword_score(chunks: int) -> float:
    """The keyword score from which a hit counts as near whatever its similarity is.

    It is half the weight of a word that only one chunk contains: about the weight of a word that is in no more chunks
    than the square root of their number.
    """
    number = max(chunks, 1)
    return 0.5 * math.log(1 + (number - 0.5) / 1.5)


def too_far(similarity: float | None, lowest: float) -> str:
    if similarity is None:
        return "It has no vector yet, and says none of the words."
    return f"Its similarity {similarity:.3f} is below {lowest:.3g}, and no rare words speak for it."


def _nothing_found(text: str, candidates: Sequence[Candidate]) -> str:
    if read_query(text).is_empty:
        return "There was nothing to look for, so the newest memories are given."
    if candidates:
        return "Nothing is similar enough to what was asked, so the newest memories are given."
    return "Nothing was found, so the newest memories are given."


def _newest(scope: Scope, filters: Filters, settings: Settings, now: datetime) -> Selection:
    rows = matching(scope, filters).order_by("-id")
    # Two queries, because no index serves an order by both columns.
    pinned = list(rows.filter(pinned=True)[: settings.limit])
    others = rows.filter(pinned=False)[: settings.limit - len(pinned)]
    newest = [
        Candidate(memory, place, multipliers_of(memory, settings, now))
        for place, memory in enumerate([*pinned, *others], start=1)
    ]
    return Selection("recency", chosen=newest)


def _chosen(candidates: Sequence[Candidate], settings: Settings) -> tuple[list[Candidate], list[tuple[Candidate, Cut]]]:
    ranked = sorted(candidates, key=lambda candidate: (-candidate.score, candidate.place))
    words = [words_of(candidate.passage or candidate.memory.content) for candidate in ranked]
    best = max(1.0, ranked[0].score)
    scores = [candidate.score / best for candidate in ranked]
    picked = choose(scores, words, limit=settings.limit, balance=settings.mmr_lambda)
    lowest = ranked[min(settings.limit, len(ranked)) - 1].score
    cut = [
        (candidate, _why_not_chosen(n, candidate, picked, words, ranked, lowest, settings))
        for n, candidate in enumerate(ranked)
        if n not in picked
    ]
    return [ranked[n] for n in picked], cut


def _why_not_chosen(
    n: int,
    candidate: Candidate,
    picked: Sequence[int],
    words: Sequence[frozenset[str]],
    ranked: Sequence[Candidate],
    lowest: float,
    settings: Settings,
) -> Cut:
    if n < settings.limit:
        other, share = most_alike(n, picked, words)
        return Cut("mmr", f"It shares {share:.0%} of its words with {ranked[other].memory.id}, which was chosen.")
    if candidate.score_without_decay > lowest:
        return Cut("decay", f"Its age takes {1 - candidate.multipliers.recency:.0%} off its score.")
    return Cut("rank", f"Place {n + 1} by score, and {settings.limit} are chosen.")


# The similarity of hits that were found by words or as neighbours only.
COSINES = """
SELECT e.memory_id, 1 - min(e.vector <=> (SELECT %(vector)s::halfvec(1536)))
FROM memories_chunk c
JOIN memories_embedding e ON e.instance_id = %(instance)s::uuid AND e.chunk_id = c.id
     AND e.generation = %(generation)s::smallint
WHERE c.instance_id = %(instance)s::uuid AND c.memory_id = ANY(%(ids)s::uuid[]) AND c.live
GROUP BY e.memory_id
"""


def similarities(scope: Scope, text: str, ids: Sequence[UUID]) -> dict[UUID, float]:
    """The cosine of each of these memories with the text; empty if there are no vectors."""
    instance = scope.instance
    if not ids or not instance.embedding_model:
        return {}
    try:
        # Cached, because search has just asked for the same vector.
        vector = embed_query(instance, read_query(text).text, model=instance.embedding_model)
    except Unavailable:
        return {}
    parameters: dict[str, Any] = {
        "instance": instance.id,
        "generation": instance.embedding_generation,
        "ids": list(ids),
        "vector": HalfVector.of(vector),
    }
    with connection.cursor() as cursor:
        cursor.execute(COSINES, parameters)
        return dict(cursor.fetchall())
