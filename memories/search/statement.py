"""The search statement, composed from parts.

It makes three ranked lists under the same filters: words, vectors, and context, which weighs both together and looks at
the memories said before and after. Reciprocal Rank Fusion with k = 60 merges them. `docs/search.md` explains how it
works and why, with the measurements.

Every parameter is named and cast, because PostgreSQL would read a small number as a smallint and not use an index. What
depends only on the query is computed once, in a materialised step, and not per row.
"""

from functools import lru_cache

from memories.models import Memory
from memories.search.narrowing import Narrowing
from memories.search.sizes import SCOPED, WHOLE, WIDE
from memories.search.vectors_sql import (
    SCANNED,
    Point,
    VectorIndex,
    lost,
    near_by_index,
    near_by_scan,
    nearest,
    since,
)
from memories.search.words_sql import KEYWORD_DEPTH, MERGED_DEPTH, NO_WORDS, POINT, SCOPE, UNSPACED, word_list
from memoryconsole.reading import columns_of

# How many places of the word list and of the vector list score. Every place of the context list does, with this
# weight.
PLAIN_DEPTH = 10
CONTEXT_WEIGHT = 30
VECTOR_DEPTH = 70
# The mean of the nearest hundred is what they have in common and does not tell them apart; the mean of fewer is what
# the query asks for. Every fourth of the hundred gives nearly the same mean.
COMMON_DEPTH, COMMON_STEP = 100, 4
# Under a wide filter, sketches select twice as many candidates as are reranked, and 300 of them should pass the
# filter. An index orders by the vectors themselves, so 40 are enough.
WIDE_NEAR, ENOUGH, ENOUGH_INDEXED = 2, 300, 40


# Count the memories and set the planner for this transaction. As counting decides the form of the statement, its plan
# can be generic and kept; it never scans a whole table or starts parallel workers. A vector index collects as many
# candidates as it is asked for, and more while filters reject them.
PREPARE = """
SELECT coalesce(sum(delta), 0)::bigint, coalesce(sum(delta) FILTER (WHERE private), 0)::bigint,
       set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
       set_config('max_parallel_workers_per_gather', '0', true),
       set_config('hnsw.ef_search', %(candidates)s::text, true),
       set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.max_scan_tuples', '10000', true)
FROM memories_memorycount WHERE instance_id = %(instance)s
"""


# Grouped before the limit, so that the many chunks of a long memory take one place. OFFSET 0 makes PostgreSQL compute
# the distances first; otherwise sorting and grouping would carry the vectors along.
NEAREST = """
nearest AS MATERIALIZED (
    SELECT memory_id, min(distance) AS distance
    FROM ({distances} OFFSET 0) AS compared
    GROUP BY memory_id ORDER BY distance, memory_id DESC LIMIT {nearest}
),
"""

VECTORS_EXACT = """
    SELECT e.memory_id, e.vector <=> (SELECT wanted FROM point) AS distance
    FROM memories_embedding e
    WHERE e.instance_id = %(instance)s::uuid AND e.generation = %(generation)s::smallint
      AND (e.live OR %(superseded)s::boolean) AND (SELECT wanted FROM point) IS NOT NULL AND {narrowed}
"""

# The vectors of the chunks in an earlier step.
VECTORS_OF = """
    SELECT e.memory_id, e.vector <=> (SELECT wanted FROM point) AS distance
    FROM {chosen} c CROSS JOIN LATERAL (
        SELECT e.memory_id, e.vector FROM memories_embedding e
        WHERE e.instance_id = %(instance)s::uuid AND e.chunk_id = c.id AND e.generation = %(generation)s::smallint
        OFFSET 0
    ) AS e
    WHERE (SELECT wanted FROM point) IS NOT NULL
"""
# The candidates found by an index, which has compared them already, or by sketches, which have not.
VECTORS_NEAR = f"""
    SELECT memory_id, compared AS distance FROM rough WHERE compared IS NOT NULL
    UNION ALL
    {VECTORS_OF.format(chosen="(SELECT id FROM rough WHERE compared IS NULL)")}
"""

# Sketches find the candidates, full vectors rank them.
SKETCH = """
sketch AS MATERIALIZED (SELECT memories_sketch(wanted)::bit(1536) AS wanted FROM point),
"""
WANTED = Point("(SELECT wanted FROM point)", "(SELECT wanted FROM sketch)")
ROUGH = """
rough AS MATERIALIZED ({nearest}),
"""
# A wide filter is only asked about the nearest memories. If too few of those pass, what it leaves is elsewhere, and
# all of it is scanned.
ROUGH_WIDE = """
found AS MATERIALIZED ({found}),
passing AS MATERIALIZED (
    SELECT * FROM found
    UNION ALL
    SELECT * FROM ({later}) AS near WHERE {narrowed}
),
rough AS MATERIALIZED (
    SELECT * FROM passing
    UNION ALL
    ({all_of_them})
),
"""
TOO_FEW = "(SELECT count(*) FROM passing) < {enough}"
NOTHING = "SELECT NULL::uuid AS id, NULL::uuid AS memory_id, 0::float8 AS distance, 0::float8 AS compared WHERE false"

# Checked again for every hit, because a memory may have become private after the form of the statement was chosen.
READER = " AND (m.visibility <> 'private' OR m.owner = %(reader)s::text)"

FUSED = """
-- With the vector of the first chunk, if there are enough memories for the mean of the nearest hundred.
near AS MATERIALIZED (
    SELECT n.memory_id, n.similarity, n.rank, e.vector
    FROM (
        SELECT memory_id, 1 - distance AS similarity,
               row_number() OVER (ORDER BY 1 - distance DESC, memory_id DESC) AS rank
        FROM nearest
    ) AS n LEFT JOIN LATERAL (
        SELECT e.vector
        FROM memories_chunk c JOIN memories_embedding e ON e.instance_id = %(instance)s::uuid AND e.chunk_id = c.id
             AND e.generation = %(generation)s::smallint
        WHERE c.instance_id = %(instance)s::uuid AND c.memory_id = n.memory_id AND c.position = 0
          AND c.version_id IS NULL
          AND %(common)s::float8 > 0 AND (SELECT count(*) FROM nearest) >= {common_depth}
        LIMIT 1
    ) AS e ON true
    WHERE n.rank <= {vector_depth} OR (n.rank <= {common_depth} AND mod(n.rank, {common_step}) = 0)
),
in_common AS MATERIALIZED (SELECT sum(vector) AS vector FROM near WHERE mod(rank, {common_step}) = 0),
-- The vector list is ordered by cosine. The context list uses `share`: the cosine reduced by how much a memory
-- resembles what the nearest have in common, for example a name, and scaled to 0–1.
vector AS MATERIALIZED (
    SELECT memory_id, similarity, rank,
           (telling - min(telling) OVER ()) / nullif(max(telling) OVER () - min(telling) OVER (), 0) AS share
    FROM (
        SELECT memory_id, similarity, rank,
               similarity - %(common)s::float8 * coalesce(ordinary, max(ordinary) OVER (), 0) AS telling
        FROM (
            SELECT memory_id, similarity, rank, 1 - (vector <=> (SELECT vector FROM in_common)) AS ordinary
            FROM near WHERE rank <= {vector_depth} OFFSET 0
        ) AS compared
    ) AS best
),
candidate AS MATERIALIZED (
    SELECT c.*, m.source_conversation_id AS conversation, m.conversation_position AS place, m.pinned, m.importance,
           m.updated_at
    FROM (
        SELECT memory_id, v.rank AS vector_rank, v.similarity, k.rank AS keyword_rank, k.score AS keyword_score,
               %(trust)s::float8 * coalesce(v.share, CASE WHEN v.rank IS NULL THEN 0 ELSE 1 END)
               + (1 - %(trust)s::float8) * coalesce(k.share, 0) AS own
        FROM keyword k FULL JOIN vector v USING (memory_id)
    ) AS c
    JOIN memories_memory m ON m.instance_id = %(instance)s::uuid AND m.id = c.memory_id
    WHERE (m.listed OR (%(superseded)s::boolean AND m.status = 'superseded'))
      AND (m.expires_at IS NULL OR m.expires_at > statement_timestamp()){reader}
),
-- What was said within two places of the 50 best can be the answer even if it contains no word of the query.
everyone AS MATERIALIZED (
    SELECT * FROM candidate
    UNION ALL
    SELECT DISTINCT m.id, NULL::bigint, NULL::float8, NULL::bigint, NULL::float8, 0::float8,
           m.source_conversation_id, m.conversation_position, m.pinned, m.importance, m.updated_at
    FROM (SELECT conversation, place FROM candidate ORDER BY own DESC, memory_id DESC LIMIT 50) AS top
    JOIN memories_memory m ON m.instance_id = %(instance)s::uuid AND m.source_conversation_id = top.conversation
         AND m.conversation_position BETWEEN top.place - 2 AND top.place + 2
    WHERE m.listed AND (m.expires_at IS NULL OR m.expires_at > statement_timestamp()){reader} AND {narrowed}
      AND m.id NOT IN (SELECT memory_id FROM candidate)
),
-- The form of each memory, as seen in its first chunk: whether the query names who said it or the word it begins with
-- (mostly its subject), whether it is a question, and its length. LATERAL, because a join would read every chunk that
-- has one of the words. In scripts without spaces only the beginning counts, because their pieces carry no weight A.
said AS MATERIALIZED (
    SELECT x.*, c.turn, x.own + CASE WHEN c.about THEN 0.3::float8 ELSE 0 END
           - CASE WHEN c.question THEN 0.15::float8 ELSE 0 END
           + CASE WHEN x.conversation IS NULL THEN 0.1::float8 ELSE 0.2::float8 END
           * least(greatest(ln(c.length / (SELECT length FROM average)), -1), 1) AS worth
    FROM everyone x LEFT JOIN LATERAL (
        SELECT c.who <> '' AND c.who !~ '{unspaced}'
               AND c.words @@ (SELECT string_agg(quoted || sign || 'A', ' | ')::tsquery FROM term)
               OR c.first_word = ANY (SELECT word FROM asked) AS about,
               c.turn, c.question, greatest(c.length, 1) AS length
        FROM memories_chunk c
        WHERE c.instance_id = %(instance)s::uuid AND c.memory_id = x.memory_id AND c.position = 0
          AND c.version_id IS NULL
        LIMIT 1
    ) AS c ON true
),
-- A turn of a conversation takes all of what its neighbours lend, a fact half of it, and both a part of the best score
-- in the conversation. A memory outside of conversations counts as the best of its own.
context AS MATERIALIZED (
    SELECT *, row_number() OVER (
        ORDER BY score DESC, pinned DESC, importance DESC, updated_at DESC, memory_id DESC
    ) AS rank
    FROM (
        SELECT *, worth + 0.5::float8 * own AS score FROM said WHERE conversation IS NULL
        UNION ALL
        SELECT *, worth
               + (0.2::float8 * sum(own) OVER next_to + 0.2::float8 * sum(own) OVER around - 0.4::float8 * own)
               * CASE WHEN turn THEN 1 ELSE 0.5::float8 END
               + 0.5::float8 * max(own) OVER (PARTITION BY conversation) AS score
        FROM said WHERE conversation IS NOT NULL
        WINDOW next_to AS (PARTITION BY conversation ORDER BY place RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING),
               around AS (PARTITION BY conversation ORDER BY place RANGE BETWEEN 2 PRECEDING AND 2 FOLLOWING)
    ) AS weighed
),
fused AS MATERIALIZED (
    SELECT memory_id, vector_rank, similarity, keyword_rank, keyword_score, rank AS context_rank,
           CASE WHEN vector_rank <= {plain_depth} THEN 1::float8 / (60 + vector_rank) ELSE 0 END AS vector_rrf,
           CASE WHEN keyword_rank <= {plain_depth} THEN 1::float8 / (60 + keyword_rank) ELSE 0 END AS keyword_rrf,
           {context_weight}::float8 / (60 + rank) AS context_rrf
    FROM context
),
"""

# For mode=vector: the order of the vectors is the order of the hits.
VECTOR_ONLY = """
fused AS MATERIALIZED (
    SELECT n.memory_id, row_number() OVER best_first AS vector_rank, n.similarity, NULL::bigint AS keyword_rank,
           NULL::float8 AS keyword_score, NULL::bigint AS context_rank,
           1::float8 / (60 + row_number() OVER best_first) AS vector_rrf,
           0::float8 AS keyword_rrf, 0::float8 AS context_rrf
    FROM (
        SELECT memory_id, 1 - distance AS similarity FROM nearest
        ORDER BY similarity DESC, memory_id DESC LIMIT {keyword_depth}
    ) AS n
    JOIN memories_memory m ON m.instance_id = %(instance)s::uuid AND m.id = n.memory_id
    WHERE (m.listed OR (%(superseded)s::boolean AND m.status = 'superseded'))
      AND (m.expires_at IS NULL OR m.expires_at > statement_timestamp()){reader}
    WINDOW best_first AS (ORDER BY n.similarity DESC, m.pinned DESC, m.importance DESC, m.updated_at DESC, m.id DESC)
),
"""

# One page of hits, each with its best chunk and the words found in it. The best chunk contains most of the words; if
# several contain as many, it is the nearest.
PAGE = """
page AS MATERIALIZED (
    SELECT f.*, f.vector_rrf + f.keyword_rrf + f.context_rrf AS final
    FROM fused f
    ORDER BY final DESC, memory_id DESC LIMIT %(limit)s::bigint OFFSET %(offset)s::bigint
)
SELECT p.memory_id, p.vector_rank, p.similarity, p.vector_rrf, p.keyword_rank, p.keyword_score, p.keyword_rrf,
       p.context_rank, p.context_rrf, p.final, (SELECT count(*) FROM fused) AS total, best.content, best.version_id,
       best.matched, (SELECT count(keyword_rank) FROM fused) AS worded,
       (SELECT max(keyword_score) FROM fused) AS best_score, {memory}
FROM page p JOIN memories_memory m ON m.instance_id = %(instance)s::uuid AND m.id = p.memory_id
LEFT JOIN LATERAL (
    SELECT c.content, c.version_id, ARRAY(SELECT t.word FROM term t WHERE c.words @@ t.wanted) AS matched
    FROM memories_chunk c LEFT JOIN memories_embedding e ON e.instance_id = %(instance)s::uuid AND e.chunk_id = c.id
         AND e.generation = %(generation)s::smallint
    WHERE c.instance_id = %(instance)s::uuid AND c.memory_id = p.memory_id AND (c.live OR %(superseded)s::boolean)
    ORDER BY (SELECT count(*) FROM term t WHERE c.words @@ t.wanted) DESC, c.live DESC,
             e.vector <=> (SELECT wanted FROM point), c.position
    LIMIT 1
) AS best ON true
ORDER BY p.final DESC, p.memory_id DESC
"""


@lru_cache(maxsize=512)
def statement(
    *,
    mode: str,
    form: str,
    narrowing: Narrowing,
    rerank: int,
    index: VectorIndex | None,
    has_reader: bool,
    superseded: bool,
) -> str:
    """The statement for one search. `form` is a name from `sizes`; a reader sees only their own private memories."""
    is_vector = mode == "vector"
    word_depth = MERGED_DEPTH if mode == "hybrid" else KEYWORD_DEPTH
    fused = (VECTOR_ONLY if is_vector else FUSED).format(
        vector_depth=VECTOR_DEPTH,
        common_depth=COMMON_DEPTH,
        common_step=COMMON_STEP,
        keyword_depth=KEYWORD_DEPTH,
        plain_depth=PLAIN_DEPTH,
        context_weight=CONTEXT_WEIGHT,
        reader=READER if has_reader else "",
        narrowed=narrowing.of("m.id"),
        unspaced=UNSPACED,
    )
    parts = [
        POINT,
        narrowing.step,
        SCOPE if form == SCOPED else "",
        NO_WORDS if is_vector else word_list(form, narrowing, word_depth),
        _rough(form, narrowing, rerank, index),
        NEAREST.format(
            distances=_compared(form, narrowing),
            nearest=KEYWORD_DEPTH + 40 if is_vector else COMMON_DEPTH + 20,
        ),
        fused,
        PAGE.format(memory=columns_of(Memory, "m")),
    ]
    # A literal, because a generic plan cannot use the index of live rows if the condition has a parameter.
    return "".join(parts).replace("%(superseded)s", "true" if superseded else "false")


def _compared(form: str, narrowing: Narrowing) -> str:
    """SQL for the full vectors that are compared with the query's."""
    if form == WHOLE:
        return VECTORS_EXACT.format(narrowed=narrowing.of("e.memory_id"))
    return VECTORS_OF.format(chosen="scope") if form == SCOPED else VECTORS_NEAR


def _rough(form: str, narrowing: Narrowing, rerank: int, index: VectorIndex | None) -> str:
    """SQL for the candidates whose full vectors are compared; empty if all of them are."""
    if form in (WHOLE, SCOPED):
        return ""
    narrowed = narrowing.of("e.memory_id")
    if form != WIDE:
        return SKETCH + ROUGH.format(nearest=nearest(index, WANTED, rerank, narrowed))
    missing = TOO_FEW.format(enough=ENOUGH_INDEXED if index else ENOUGH)
    if index:
        missing = f"({missing} OR {lost(index, WANTED)})"
    return SKETCH + ROUGH_WIDE.format(
        found=near_by_index(index, WANTED, index.depth, narrowed) if index else NOTHING,
        later=near_by_scan(since(index), WANTED, rerank if index else WIDE_NEAR * rerank),
        narrowed=narrowing.of("near.memory_id"),
        all_of_them=near_by_scan(SCANNED, WANTED, rerank, f"{missing} AND {narrowing.all_of_them}"),
    )
