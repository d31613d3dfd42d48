"""Hybrid search: by words and by meaning at once, under every filter, with the reasons for each hit.

Reads fail open: if the embedder does not answer, only words are searched, and the answer says why.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from accounts.access import Scope
from instances.models import Instance
from memories.asking import Unavailable
from memories.embedding.embedder import embed_query, search_model_of
from memories.filters import Filters
from memories.models import Memory, MemoryVersion
from memories.search.planning import build_statement, prepare_transaction, trust_in
from memories.search.query import Query, read_query
from memories.search.sharing import SharedHit, origins, search_shared
from memories.search.spelling import Corrections, corrected_query, similar_words
from memoryconsole.reading import row_of

Mode = Literal["hybrid", "keyword", "vector"]


class Found(NamedTuple):
    """A row that the search statement returns."""

    memory_id: UUID
    vector_rank: int | None
    similarity: float | None
    vector_rrf: float
    keyword_rank: int | None
    keyword_score: float | None
    keyword_rrf: float
    context_rank: int | None
    context_rrf: float
    final: float
    total: int
    content: str | None
    version_id: UUID | None
    matched: list[str]
    worded: int
    """How many of all hits contain a word of the query."""
    best_score: float | None
    """The best keyword score of all hits."""


@dataclass(frozen=True, slots=True)
class Hit:
    memory: Memory
    found: Found
    version: MemoryVersion | None = None
    """The earlier text that was found, if it was not the current one."""
    origin: Instance | None = None
    """The instance that shares the memory, if another one does."""


@dataclass(frozen=True, slots=True)
class Results:
    hits: list[Hit]
    total: int
    mode: Mode
    reason: str = ""
    """Why the search could not be done as asked; empty if it could."""
    code: str = ""
    """The reason as a code."""
    corrected: Mapping[str, str] = field(default_factory=dict)
    """Unknown words and what was searched instead; an ellipsis stands for any ending."""
    worded: int = 0
    """How many of all hits contain a word of the query."""


class Why(NamedTuple):
    """Why a search cannot be done as asked: a sentence and a code."""

    reason: str = ""
    code: str = ""


ONLY_EXCLUDES = Why("This only says what to leave out. Add words to look for.", "only_excludes")


def search(
    scope: Scope,
    text: str,
    filters: Filters,
    *,
    mode: Mode = "hybrid",
    limit: int = 20,
    offset: int = 0,
    typing: bool = False,
) -> Results:
    query = read_query(text, typing=typing)
    if query.is_empty:
        return Results([], 0, mode, *(ONLY_EXCLUDES if query.only_excludes else ()))
    vector, why = _vector(scope, query) if mode != "keyword" else (None, Why())
    if vector is None and mode == "vector":
        return Results([], 0, "vector", f"{why.reason} So nothing was searched.", why.code)
    if why.reason:
        why = Why(f"{why.reason} Search finds words but not meaning.", why.code)
    used: Mode = mode if vector is not None else "keyword"
    hits, total, worded = _page(scope, query, filters, used, vector, limit, offset)
    meant = similar_words(scope, query) if used != "vector" and not worded else Corrections()
    if meant.shown:
        query = corrected_query(query, meant)
        hits, total, worded = _page(scope, query, filters, used, vector, limit, offset)
    return Results(hits, total, used, *why, meant.shown, worded)


def _page(
    scope: Scope,
    query: Query,
    filters: Filters,
    mode: Mode,
    vector: Sequence[float] | None,
    limit: int,
    offset: int,
) -> tuple[list[Hit], int, int]:
    """The hits of a page, the number of all hits, and how many of those contain a word of the query."""
    own, shared = find(scope, query, filters, mode, vector, limit, offset)
    # Every row carries the totals; a page past the last one has no row.
    first = own or (find(scope, query, filters, mode, vector, 1, 0)[0] if offset else [])
    total, worded = (first[0].found.total, first[0].found.worded) if first else (0, 0)
    if not shared:
        return own, total, worded
    worded += sum(bool(hit.keyword_score) for hit in shared)
    merged = merge_shared(own, shared, trust_in(scope.instance))
    return merged[offset : offset + limit], total + len(shared), worded


def _vector(scope: Scope, query: Query) -> tuple[list[float] | None, Why]:
    """The query's vector, made by the model of the instance's vectors, or why there is none."""
    instance = scope.instance
    model = search_model_of(instance)
    if not model:
        return None, Why("No OpenAI or Azure key reaches this instance.", "no_key")
    # An instance without vectors of its own may still find those of others.
    if not instance.embedding_model and not origins(scope):
        return None, Why("No memory has a vector yet.", "no_vectors")
    try:
        return embed_query(instance, query.text, model=model), Why()
    except Unavailable as unavailable:
        return None, Why(unavailable.reason, unavailable.code)


def find(
    scope: Scope,
    query: Query,
    filters: Filters,
    mode: Mode,
    vector: Sequence[float] | None,
    limit: int,
    offset: int,
) -> tuple[list[Hit], list[SharedHit]]:
    """The hits of a page. If other instances share hits, those too, and then all own hits up to the page's end."""
    with transaction.atomic(), connection.cursor() as cursor:
        sql, parameters = build_statement(scope, query, filters, mode, vector, prepare_transaction(scope, cursor))
        shared = search_shared(scope, filters, parameters)
        page = {"limit": offset + limit, "offset": 0} if shared else {"limit": limit, "offset": offset}
        cursor.execute(sql, {**parameters, **page})
        rows = cursor.fetchall()
    return _hits(scope, rows), shared


def merge_shared(own: Sequence[Hit], shared: Sequence[SharedHit], trust: float) -> list[Hit]:
    """Insert each shared hit before the first own hit for which words and meaning speak less."""
    # Of all hits, because the best up to the page's end would put the shared ones elsewhere on every page.
    best = max([hit.found.best_score or 0 for hit in own[:1]] + [hit.keyword_score or 0 for hit in shared] + [1e-9])

    def evidence(similarity: float | None, score: float | None) -> float:
        return trust * (similarity or 0) + (1 - trust) * (score or 0) / best

    waiting = sorted(shared, key=lambda hit: (evidence(hit.similarity, hit.keyword_score), hit.memory.id), reverse=True)
    order: list[Hit] = []
    for hit in own:
        least = evidence(hit.found.similarity, hit.found.keyword_score)
        while waiting and evidence(waiting[0].similarity, waiting[0].keyword_score) > least:
            order.append(_with_score(waiting.pop(0), hit.found.final))
        order.append(hit)
    for left in waiting:
        score = own[-1].found.final if own else evidence(left.similarity, left.keyword_score)
        order.append(_with_score(left, score))
    return order


def _with_score(hit: SharedHit, final: float) -> Hit:
    """A shared hit, scored like the place it takes."""
    found = Found(
        memory_id=hit.memory.id,
        vector_rank=None,
        similarity=hit.similarity,
        vector_rrf=0.0,
        keyword_rank=None,
        keyword_score=hit.keyword_score,
        keyword_rrf=0.0,
        context_rank=None,
        context_rrf=0.0,
        final=final,
        total=0,
        content=hit.content,
        version_id=None,
        matched=hit.matched,
        worded=0,
        best_score=None,
    )
    return Hit(hit.memory, found, origin=hit.origin)


def _hits(scope: Scope, rows: Sequence[tuple[Any, ...]]) -> list[Hit]:
    width = len(Found._fields)
    found = [(Found(*row[:width]), row_of(Memory, row[width:])) for row in rows]
    old = [hit.version_id for hit, _ in found if hit.version_id]
    kept = MemoryVersion.objects.filter(instance=scope.instance, id__in=old) if old else []
    versions = {version.id: version for version in kept}
    return [Hit(memory, hit, versions.get(hit.version_id) if hit.version_id else None) for hit, memory in found]
