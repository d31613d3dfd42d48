"""Search: words and meaning together, under every filter, with the reasons for each hit.

Reads fail open: when the embedder does not answer, words alone are searched, and the answer says so and why.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from accounts.access import Scope
from instances.models import Instance
from memories.asking import Unavailable
from memories.embedding import embed_query, model_of
from memories.filters import Filters, matching, readable
from memories.listing import length
from memories.models import Memory, MemoryVersion
from memories.offline_embedder import MODEL as OFFLINE
from memories.query import Phrase, Query, read_query
from memories.search_sql import EXACT_UP_TO, HUGE, LARGE, RERANK, SCOPED, WHOLE, WORD_BUDGET, statement

Mode = Literal["hybrid", "keyword", "vector"]

# How much the context list trusts vectors against words. Hashed vectors know words, not meaning.
TRUST, TRUST_OFFLINE = 0.4, 0.2
RERANK_OFFLINE = 1_000
# Under a filter going through what it leaves is still the fastest at this many times the size.
FILTERED_TIMES = 4


class Found(NamedTuple):
    """A row of the search statement."""

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
    """How many of all hits say a word of the query."""


@dataclass(frozen=True, slots=True)
class Hit:
    memory: Memory
    found: Found
    version: MemoryVersion | None = None


@dataclass(frozen=True, slots=True)
class Results:
    hits: list[Hit]
    total: int
    mode: Mode
    reason: str = ""
    """Why the search was not what was asked for; empty when it was."""
    corrected: Mapping[str, str] = field(default_factory=dict)
    """Words that are nowhere, and what was looked for instead."""


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
        return Results([], 0, mode)
    vector, reason = _vector(scope.instance, query) if mode != "keyword" else (None, "")
    if vector is None and mode == "vector":
        return Results([], 0, "vector", reason)
    used: Mode = mode if vector is not None else "keyword"
    found, total, worded = _page(scope, query, filters, used, vector, limit, offset)
    corrected = similar_words(scope, query) if used != "vector" and not worded else {}
    if corrected:
        query = _corrected(query, corrected)
        found, total, _ = _page(scope, query, filters, used, vector, limit, offset)
    return Results(_hits(scope, found), total, used, reason, corrected)


def _page(
    scope: Scope,
    query: Query,
    filters: Filters,
    mode: Mode,
    vector: Sequence[float] | None,
    limit: int,
    offset: int,
) -> tuple[list[Found], int, int]:
    """The rows of a page, how many hits there are in all, and how many of them say a word of the query."""
    found = _find(scope, query, filters, mode, vector, limit, offset)
    # A page behind the last one has no row that could tell.
    first = found or (_find(scope, query, filters, mode, vector, 1, 0) if offset else [])
    return (found, first[0].total, first[0].worded) if first else (found, 0, 0)


def _vector(instance: Instance, query: Query) -> tuple[list[float] | None, str]:
    """The query's vector by the model the instance's vectors were made with, or why there is none."""
    if not instance.embedding_model:
        model = model_of(instance)
        if not model:
            return None, "No OpenAI or Azure key reaches this instance, so search finds words but not meaning."
        return None, "No memory has a vector yet, so search finds words but not meaning."
    try:
        return embed_query(instance, query.text, model=instance.embedding_model), ""
    except Unavailable as unavailable:
        return None, f"{unavailable.reason} Search finds words but not meaning."


def _find(
    scope: Scope,
    query: Query,
    filters: Filters,
    mode: Mode,
    vector: Sequence[float] | None,
    limit: int,
    offset: int,
) -> list[Found]:
    instance = scope.instance
    chunks = length(scope)
    narrows = bool(filters.narrowing().keys() - {"includeSuperseded"}) or query.has_conditions
    is_filtered = narrows or scope.private_memories_of is not None
    allowed, parameters = _allowed(scope, filters, query) if is_filtered else ("", {})
    form = _form(instance, chunks, filters, allowed, parameters)
    sql = statement(
        mode=mode,
        form=form,
        is_filtered=is_filtered,
        allowed=allowed,
        instance=instance.id,
        generation=instance.embedding_generation,
    )
    is_offline = instance.embedding_model == OFFLINE
    parameters |= {
        "instance": instance.id,
        "language": instance.language,
        "text": query.text,
        "prefix": query.prefix,
        "vector": "[" + ",".join(f"{x:.5g}" for x in vector) + "]" if vector is not None else None,
        "generation": instance.embedding_generation,
        "trust": 0.0 if vector is None else TRUST_OFFLINE if is_offline else TRUST,
        "superseded": bool(filters.include_superseded),
        "chunks": float(chunks),
        "limit": limit,
        "offset": offset,
        "budget": WORD_BUDGET,
        "rerank": RERANK_OFFLINE if is_offline else RERANK,
    }
    with transaction.atomic() if form == HUGE else nullcontext(), connection.cursor() as cursor:
        if form == HUGE:
            cursor.execute(SCAN_WIDELY)
        cursor.execute(sql, parameters)
        return [Found(*row) for row in cursor.fetchall()]


# For this transaction: look at as many candidates as are put in order later, and go on while filters take them away.
SCAN_WIDELY = """
SELECT set_config('hnsw.ef_search', '400', true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
       set_config('hnsw.max_scan_tuples', '100000', true)
"""


def _form(instance: Instance, chunks: int, filters: Filters, allowed: str, parameters: Mapping[str, Any]) -> str:
    """Chosen by counting, not by the planner: it takes an index scan for cheap where it is not."""
    if chunks <= EXACT_UP_TO:
        return SCOPED if allowed else WHOLE
    if filters.include_superseded and not allowed:
        return WHOLE
    large = HUGE if instance.indexed_generation == instance.embedding_generation else LARGE
    if not allowed:
        return large
    most = EXACT_UP_TO * FILTERED_TIMES
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ({allowed} LIMIT {most + 1}) AS first_ones", parameters)
        return SCOPED if cursor.fetchone()[0] <= most else large


def _allowed(scope: Scope, filters: Filters, query: Query) -> tuple[str, dict[str, Any]]:
    """The ids that filters and conditions leave, as SQL with named parameters: the list and search never disagree."""
    sql, values = matching(scope, filters).order_by().values("id").query.sql_with_params()
    names = iter(range(len(values)))
    named = re.sub("%s", lambda _: f"%(filter{next(names)})s", sql)
    parameters: dict[str, Any] = {f"filter{n}": value for n, value in enumerate(values)}
    if not query.has_conditions:
        return named, parameters
    parameters |= {
        "says_in": scope.instance.id,
        "says_language": scope.instance.language,
        "says_superseded": bool(filters.include_superseded),
    }
    conditions = [SAYS.format(wanted=_wanted(phrases, parameters)) for phrases in query.required]
    if query.excluded:
        conditions.append(SAYS_NOT.format(wanted=_wanted(query.excluded, parameters)))
    return f"SELECT id FROM ({named}) AS filtered WHERE {' AND '.join(conditions)}", parameters


# Of a memory, not of a chunk: what is excluded may not stand in any of them, and phrases may stand in several.
SAYING = """id IN (
    SELECT c.memory_id FROM memories_chunk c
    WHERE c.instance_id = %(says_in)s::uuid AND (c.live OR %(says_superseded)s::boolean)
      AND c.words @@ (SELECT {wanted})
)"""
# A phrase of nothing but stop words is no condition.
SAYS = f"({SAYING} OR numnode((SELECT {{wanted}})) = 0)"
SAYS_NOT = f"NOT {SAYING}"


def _wanted(phrases: Sequence[Phrase], parameters: dict[str, Any]) -> str:
    """Any of the phrases as SQL for a text-search query, whose values join the parameters."""
    choices = []
    for phrase in phrases:
        name = f"says{len(parameters)}"
        parameters |= {name: phrase.words, f"{name}_pieces": " & ".join(phrase.pieces)}
        words = f"phraseto_tsquery(%(says_language)s::text::regconfig, %({name})s::text)"
        choices.append(f"({words} && %({name}_pieces)s::text::tsquery)" if phrase.pieces else words)
    return " || ".join(choices)


def _hits(scope: Scope, found: Sequence[Found]) -> list[Hit]:
    ids = [row.memory_id for row in found]
    memories = {memory.id: memory for memory in readable(scope).filter(id__in=ids)}
    old = [row.version_id for row in found if row.version_id]
    versions = {
        version.id: version for version in MemoryVersion.objects.filter(instance=scope.instance, id__in=old) if old
    }
    return [
        Hit(memories[row.memory_id], row, versions.get(row.version_id) if row.version_id else None)
        for row in found
        if row.memory_id in memories
    ]


# Words of the instance that look like the ones nobody wrote, by the letters they share.
SIMILAR = """
WITH known AS MATERIALIZED (SELECT word, ndoc FROM ts_stat(%(chunks)s) WHERE length(word) > 2),
wanted AS MATERIALIZED (
    SELECT word, tsvector_to_array(memories_words(%(language)s::text::regconfig, '', word, '')) AS cut
    FROM unnest(%(words)s::text[]) AS word
)
SELECT DISTINCT ON (wanted.word) wanted.word, known.word
FROM wanted JOIN known ON known.word %% wanted.word OR known.word %% wanted.cut[1]
WHERE cardinality(wanted.cut) > 0 AND NOT EXISTS (SELECT FROM known AS same WHERE same.word = ANY(wanted.cut))
ORDER BY wanted.word, greatest(similarity(known.word, wanted.word), similarity(known.word, wanted.cut[1])) DESC,
         known.ndoc DESC, known.word
"""


# How one of these words is written: the index knows its stem alone.
SPELLING = """
SELECT lower(token)
FROM (
    SELECT c.who, c.content, c.about FROM memories_chunk c
    WHERE c.instance_id = %(instance)s::uuid AND c.live {private}
      AND c.words @@ array_to_tsvector(ARRAY[%(stem)s::text])::text::tsquery
    LIMIT 20
) AS examples, ts_parse('default', concat_ws(' ', who, content, about))
WHERE %(stem)s = ANY(tsvector_to_array(to_tsvector(%(language)s::text::regconfig, token)))
ORDER BY similarity(token, %(wanted)s) DESC, token
LIMIT 1
"""
# A word of somebody's private memory is nobody else's suggestion.
NOT_PRIVATE = """
AND c.memory_id NOT IN (SELECT id FROM memories_memory WHERE instance_id = '{}' AND visibility = 'private')"""


def similar_words(scope: Scope, query: Query) -> dict[str, str]:
    """For each word that is nowhere, the most similar word that is somewhere."""
    words = re.findall(r"[^\W_]{3,}", query.text.lower())[:8]
    if not words:
        return {}
    instance = scope.instance
    private = NOT_PRIVATE.format(instance.id) if scope.private_memories_of is not None else ""
    sample = (
        f"SELECT c.words FROM memories_chunk c WHERE c.instance_id = '{instance.id}' AND c.live {private} LIMIT 20000"
    )
    with connection.cursor() as cursor:
        cursor.execute(SIMILAR, {"words": words, "chunks": sample, "language": instance.language})
        stems = dict(cursor.fetchall())
        for word, stem in stems.items():
            named = {"instance": instance.id, "language": instance.language, "stem": stem, "wanted": word}
            cursor.execute(SPELLING.format(private=private), named)
            stems[word] = (cursor.fetchone() or [stem])[0]
    return stems


def _corrected(query: Query, corrected: Mapping[str, str]) -> Query:
    words = [corrected.get(word.lower(), word) for word in query.text.split()]
    return replace(query, text=" ".join([*words, *corrected.values()]), prefix="")
