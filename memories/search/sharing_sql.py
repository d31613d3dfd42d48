"""The statement that searches by words and vectors in a few thousand memories that other instances share.

It is composed from parts of the search statement. It has no context list, because the conversation around a shared
memory is not shared.
"""

from memories.models import Memory
from memories.search.words_sql import MATCHED_SCOPED, POINT, SCORED, TERM, TYPED
from memoryconsole.reading import columns_of

SCOPE = """
allowed AS MATERIALIZED ({allowed}),
scope AS MATERIALIZED (
    SELECT c.* FROM allowed a CROSS JOIN LATERAL (
        SELECT c.instance_id, c.id, c.memory_id, c.length, c.words FROM memories_chunk c
        WHERE c.instance_id = a.instance_id AND c.memory_id = a.id AND c.live
        OFFSET 0
    ) AS c
),
"""

# Only vectors of the model that embedded the query. Each instance counts its own generations.
NEAREST = """
comparable AS MATERIALIZED (
    SELECT * FROM unnest(%(sources)s::uuid[], %(generations)s::smallint[]) AS known (instance_id, generation)
),
nearest AS MATERIALIZED (
    SELECT memory_id, 1 - min(distance) AS similarity
    FROM (
        SELECT e.memory_id, e.vector <=> (SELECT wanted FROM point) AS distance
        FROM scope c JOIN comparable k USING (instance_id) CROSS JOIN LATERAL (
            SELECT e.memory_id, e.vector FROM memories_embedding e
            WHERE e.instance_id = c.instance_id AND e.chunk_id = c.id AND e.generation = k.generation
            OFFSET 0
        ) AS e
        WHERE (SELECT wanted FROM point) IS NOT NULL
        OFFSET 0
    ) AS compared
    GROUP BY memory_id
),
"""

HITS = """
worded AS MATERIALIZED (SELECT memory_id, max(score) AS score FROM scored GROUP BY memory_id),
hits AS MATERIALIZED (
    SELECT memory_id, n.similarity, w.score FROM worded w FULL JOIN nearest n USING (memory_id)
    WHERE w.score IS NOT NULL OR n.similarity >= %(threshold)s::float8
)
SELECT h.similarity, h.score, best.content, best.matched, {memory}
FROM hits h
JOIN allowed a ON a.id = h.memory_id
JOIN memories_memory m ON m.instance_id = a.instance_id AND m.id = a.id
LEFT JOIN LATERAL (
    SELECT c.content, ARRAY(SELECT t.word FROM term t WHERE c.words @@ t.wanted) AS matched
    FROM memories_chunk c LEFT JOIN memories_embedding e ON e.instance_id = a.instance_id AND e.chunk_id = c.id
         AND e.generation = (SELECT generation FROM comparable k WHERE k.instance_id = a.instance_id)
    WHERE c.instance_id = a.instance_id AND c.memory_id = a.id AND c.live
    ORDER BY (SELECT count(*) FROM term t WHERE c.words @@ t.wanted) DESC,
             e.vector <=> (SELECT wanted FROM point), c.position
    LIMIT 1
) AS best ON true
"""


def shared_statement(allowed: str) -> str:
    return "".join(
        [
            POINT,
            TYPED,
            SCOPE.format(allowed=allowed),
            TERM,
            MATCHED_SCOPED,
            SCORED.format(total="(SELECT count(*) FROM scope)"),
            NEAREST,
            HITS.format(memory=columns_of(Memory, "m")),
        ]
    )
