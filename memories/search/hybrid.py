"""Hybrid search: by words and by meaning at once, under every filter, with the reasons for each hit.

Reads fail open: if the embedder does not answer, only words are searched, and the answer says why.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from accounts.access import Scope
from instances.models import Instance
from memories.asking import Unavailable
from memories.embedding.embedder import embed_query, search_model_of
from memories.embedding.offline import MODEL as OFFLINE
from memories.filters import Filters, matching_sql
from memories.listing import Lengths
from memories.models import Memory, MemoryVersion
from memories.search.narrowing import Narrowing, each_if, only, without_private
from memories.search.passing import count_passing
from memories.search.query import Phrase, Query, read_query
from memories.search.sharing import SharedHit, origins, search_shared
from memories.search.sizes import ALL_WORDS_UP_TO, EXACT_UP_TO, LARGE, MIDDLE, SCOPED, SOME, WHOLE, WIDE
from memories.search.spelling import Corrections, corrected_query, similar_words
from memories.search.statement import PREPARE, statement
from memories.search.vectors_sql import index_of
from memories.search.words_sql import WORD_BUDGET
from memoryconsole.postgres.halfvec import HalfVector
from memoryconsole.reading import row_of

if TYPE_CHECKING:
    from django.db.backends.utils import CursorWrapper

Mode = Literal["hybrid", "keyword", "vector"]

# The weight of vectors in the context list; words have the rest. Hashed vectors know words, not meaning.
TRUST, TRUST_OFFLINE = 0.45, 0.2
# How much a hit loses for resembling the average of the nearest hundred. What hashed vectors have in common are words,
# and idf already weighs those.
COMMON, COMMON_OFFLINE = 0.4, 0.0
# How many of the nearest by sketch are reranked by their full vectors: at least RERANK, growing with the root of the
# number of memories, because sketches of many look alike. In steps, because every number needs its own cached plan.
RERANK, RERANK_PER_ROOT, RERANK_STEP = 600, 6, 200
# The most candidates a vector index collects in its first round.
MOST_AT_FIRST = 400
# A filter is wide if it leaves more than a tenth and more than 5,000: then the nearest memories are found first and
# the filter is asked about those. It is narrow if it leaves less than a 25th: then what it leaves is compared one by
# one. In a small instance that pays only up to an eighth.
WIDE_ONE_IN, WIDE_FROM, NARROW_ONE_IN, SCOPED_ONE_IN = 10, 5_000, 25, 8
# A vector index under a wide filter is asked for this part of the candidates, all of which pass: the more the filter
# rejects, the more of the index is read for each. A filter that leaves more than a fifth is very wide.
WIDE_PART, VERY_WIDE_PART, VERY_WIDE_ONE_IN = 0.3, 0.5, 5


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
    merged = merge_shared(own, shared, _trust(scope.instance))
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
    best = max([hit.found.keyword_score or 0 for hit in own] + [hit.keyword_score or 0 for hit in shared] + [1e-9])

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
    )
    return Hit(hit.memory, found, origin=hit.origin)


def prepare_transaction(scope: Scope, cursor: "CursorWrapper") -> Lengths:
    """Set the transaction's planner settings for a search, and count the instance's memories on the way."""
    candidates = min(scope.instance.indexed_depth or MOST_AT_FIRST, MOST_AT_FIRST)
    cursor.execute(PREPARE, {"instance": scope.instance.id, "candidates": str(candidates)})
    return Lengths(*cursor.fetchone()[:2])


def build_statement(
    scope: Scope, query: Query, filters: Filters, mode: Mode, vector: Sequence[float] | None, sizes: Lengths
) -> tuple[str, dict[str, Any]]:
    """The statement for a search and its parameters, all but `limit` and `offset`."""
    instance = scope.instance
    parameters: dict[str, Any] = {
        "instance": instance.id,
        "language": instance.language,
        "text": query.text,
        "prefix": query.prefix,
        "vector": HalfVector.of(vector) if vector is not None else None,
        "generation": instance.embedding_generation,
        "trust": _trust(instance) if vector is not None else 0.0,
        "common": COMMON_OFFLINE if search_model_of(instance) == OFFLINE else COMMON,
        "reader": scope.private_memories_of,
        "chunks": float(sizes.all),
        "budget": WORD_BUDGET,
    }
    form = _form(scope, query, filters, sizes, parameters)
    index = index_of(instance) if form.name in (LARGE, WIDE) else None
    sql = statement(
        mode=mode,
        form=form.name,
        narrowing=form.narrowing,
        rerank=rerank_depth(form.among),
        index=index._replace(depth=int(index.depth * form.part)) if index else None,
        has_reader=scope.private_memories_of is not None,
        superseded=bool(filters.include_superseded),
    )
    return sql, parameters


def _trust(instance: Instance) -> float:
    return TRUST_OFFLINE if search_model_of(instance) == OFFLINE else TRUST


class Form(NamedTuple):
    """How to search."""

    name: str
    narrowing: Narrowing
    among: int
    """How many memories there are at most to find."""
    part: float = 1.0
    """The part of the usual number of candidates that a vector index is asked for."""


def _form(scope: Scope, query: Query, filters: Filters, sizes: Lengths, parameters: dict[str, Any]) -> Form:
    """Chosen by counting and not by the planner, which underestimates index scans.

    Sketches of earlier texts are in no index, so a search that includes those compares every vector.
    """
    is_exact = sizes.all <= EXACT_UP_TO or bool(filters.include_superseded)
    whole = WHOLE if is_exact else MIDDLE if sizes.all <= ALL_WORDS_UP_TO else LARGE
    hides = scope.private_memories_of is not None and sizes.private > 0
    is_narrow = bool(filters.narrowing().keys() - {"includeSuperseded"}) or query.has_conditions
    if not is_narrow and not hides:
        return Form(whole, Narrowing(), sizes.all)
    if not is_narrow and sizes.private <= EXACT_UP_TO:
        return Form(whole, without_private(), sizes.all)
    allowed = _allowed(scope, filters, query, parameters)
    if is_exact:
        return Form(SCOPED, only(allowed), sizes.all)
    return _narrowed(allowed, sizes, parameters)


def _narrowed(allowed: str, sizes: Lengths, parameters: dict[str, Any]) -> Form:
    """The form for a filter, by how many memories it leaves."""
    wide, narrow = max(WIDE_FROM, sizes.all // WIDE_ONE_IN), max(EXACT_UP_TO, sizes.all // NARROW_ONE_IN)
    very_wide = max(wide, sizes.all // VERY_WIDE_ONE_IN)
    passing = count_passing(allowed, parameters, at_most=max(narrow, very_wide) + 1)
    if passing > wide:
        part = VERY_WIDE_PART if passing > very_wide else WIDE_PART
        return Form(WIDE, each_if(allowed), sizes.all, part)
    if passing > narrow:
        return Form(SOME, only(allowed), passing)
    if passing <= sizes.all // SCOPED_ONE_IN:
        return Form(SCOPED, only(allowed), passing)
    parameters["chunks"] = float(passing)
    return Form(WHOLE, only(allowed), passing)


def rerank_depth(memories: int) -> int:
    return max(RERANK, RERANK_STEP * ceil(RERANK_PER_ROOT * sqrt(memories) / RERANK_STEP))


def _allowed(scope: Scope, filters: Filters, query: Query, parameters: dict[str, Any]) -> str:
    """SQL for the ids that filters and the query's conditions leave; adds its values to the parameters."""
    named = matching_sql(scope, filters, parameters)
    if not query.has_conditions:
        return named
    parameters |= {
        "says_in": scope.instance.id,
        "says_language": scope.instance.language,
        "says_superseded": bool(filters.include_superseded),
    }
    conditions = [SAYS.format(wanted=_wanted(phrases, parameters)) for phrases in query.required]
    if query.excluded:
        conditions.append(SAYS_NOT.format(wanted=_wanted(query.excluded, parameters)))
    return f"SELECT id FROM ({named}) AS filtered WHERE {' AND '.join(conditions)}"


# Conditions are about memories, not chunks: an excluded word may be in none of a memory's chunks, and its required
# phrases may be in different ones.
SAYING = """id IN (
    SELECT c.memory_id FROM memories_chunk c
    WHERE c.instance_id = %(says_in)s::uuid AND (c.live OR %(says_superseded)s::boolean)
      AND c.words @@ (SELECT {wanted})
)"""
# A phrase of stop words alone is no condition.
SAYS = f"({SAYING} OR numnode((SELECT {{wanted}})) = 0)"
SAYS_NOT = f"NOT {SAYING}"
SAID = "phraseto_tsquery(%(says_language)s::text::regconfig, memories_folded(%({name})s::text))"


def _wanted(phrases: Sequence[Phrase], parameters: dict[str, Any]) -> str:
    """SQL for a text-search query that matches any of the phrases; adds its values to the parameters."""
    choices = []
    for phrase in phrases:
        name = f"says{len(parameters)}"
        parameters |= {name: phrase.words, f"{name}_pieces": " & ".join(phrase.pieces)}
        words = SAID.format(name=name)
        choices.append(f"({words} && %({name}_pieces)s::text::tsquery)" if phrase.pieces else words)
        if phrase.parts:
            parameters[f"{name}_parts"] = phrase.parts
            choices.append(SAID.format(name=f"{name}_parts"))
    return " || ".join(choices)


def _hits(scope: Scope, rows: Sequence[tuple[Any, ...]]) -> list[Hit]:
    width = len(Found._fields)
    found = [(Found(*row[:width]), row_of(Memory, row[width:])) for row in rows]
    old = [hit.version_id for hit, _ in found if hit.version_id]
    kept = MemoryVersion.objects.filter(instance=scope.instance, id__in=old) if old else []
    versions = {version.id: version for version in kept}
    return [Hit(memory, hit, versions.get(hit.version_id) if hit.version_id else None) for hit, memory in found]
