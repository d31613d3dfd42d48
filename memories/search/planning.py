"""Choose the form of the search statement by how much there is to search, and compose it with its parameters.

The form is chosen by counting and not by PostgreSQL's planner, which underestimates index scans.
"""

from collections.abc import Sequence
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from accounts.access import Scope
from instances.models import Instance
from memories.embedding.embedder import search_model_of
from memories.embedding.offline import MODEL as OFFLINE
from memories.filters import Filters
from memories.listing import Lengths
from memories.search.narrowing import Narrowing, allowed_sql, each_if, only, without_private
from memories.search.passing import count_passing
from memories.search.query import Query
from memories.search.sizes import ALL_WORDS_UP_TO, EXACT_UP_TO, LARGE, MIDDLE, SCOPED, SOME, WHOLE, WIDE
from memories.search.statement import PREPARE, statement
from memories.search.vectors_sql import index_of
from memories.search.words_sql import WORD_BUDGET
from memoryconsole.postgres.halfvec import HalfVector

if TYPE_CHECKING:
    from django.db.backends.utils import CursorWrapper

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
# rejects, the more of the index is read for each. A filter that leaves more than a sixth is very wide.
WIDE_PART, VERY_WIDE_PART, VERY_WIDE_ONE_IN = 0.3, 0.5, 6


def prepare_transaction(scope: Scope, cursor: "CursorWrapper") -> Lengths:
    """Set the transaction's planner settings for a search, and count the instance's memories on the way."""
    candidates = min(scope.instance.indexed_depth or MOST_AT_FIRST, MOST_AT_FIRST)
    cursor.execute(PREPARE, {"instance": scope.instance.id, "candidates": str(candidates)})
    return Lengths(*cursor.fetchone()[:2])


def build_statement(
    scope: Scope, query: Query, filters: Filters, mode: str, vector: Sequence[float] | None, sizes: Lengths
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
        "trust": trust_in(instance) if vector is not None else 0.0,
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


def trust_in(instance: Instance) -> float:
    """The weight of its vectors against words."""
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
    # Sketches of earlier texts are in no index, so a search that includes those compares every vector.
    is_exact = sizes.all <= EXACT_UP_TO or bool(filters.include_superseded)
    whole = WHOLE if is_exact else MIDDLE if sizes.all <= ALL_WORDS_UP_TO else LARGE
    hides = scope.private_memories_of is not None and sizes.private > 0
    is_narrow = bool(filters.narrowing().keys() - {"includeSuperseded"}) or query.has_conditions
    if not is_narrow and not hides:
        return Form(whole, Narrowing(), sizes.all)
    if not is_narrow and sizes.private <= EXACT_UP_TO:
        return Form(whole, without_private(), sizes.all)
    allowed = allowed_sql(scope, filters, query, parameters)
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
