"""The memories nearest to one memory, by the vectors search uses now."""

from typing import Any

from django.db import connection

from accounts.access import Scope
from memories.audit import note_private_reads
from memories.filters import readable
from memories.models import LISTED, Memory

# Exact as long as the instance has no more chunks than this; above, a sign per dimension chooses this many of them.
NEIGHBOURHOOD = 5_000
# A very long memory is compared by its first pieces.
OWN_PIECES = 8

NEAREST = """
WITH own AS MATERIALIZED (
    SELECT e.vector, e.bits
    FROM memories_chunk c
    JOIN memories_embedding e ON e.instance_id = %s::uuid AND e.chunk_id = c.id AND e.generation = %s::smallint
    WHERE c.instance_id = %s::uuid AND c.memory_id = %s::uuid AND c.version_id IS NULL
    ORDER BY c.position LIMIT {own_pieces}
),
rough AS MATERIALIZED (
    SELECT DISTINCT near.chunk_id
    FROM own CROSS JOIN LATERAL (
        SELECT e.chunk_id FROM memories_embedding e
        WHERE e.instance_id = %s::uuid AND e.generation = %s::smallint AND e.live{private}
        ORDER BY e.bits <~> own.bits LIMIT {neighbourhood}
    ) AS near
)
SELECT e.memory_id, 1 - min(e.vector <=> own.vector) AS cosine
FROM rough r
JOIN memories_embedding e ON e.instance_id = %s::uuid AND e.chunk_id = r.chunk_id AND e.generation = %s::smallint
CROSS JOIN own
WHERE e.memory_id <> %s::uuid AND e.memory_id IN ({readable})
GROUP BY e.memory_id
ORDER BY cosine DESC, e.memory_id DESC
LIMIT %s::bigint
"""
# Otherwise other people's private memories could be the whole neighbourhood.
NOT_PRIVATE = " AND e.memory_id IN ({readable})"


def similar(scope: Scope, memory: Memory, limit: int = 5) -> list[tuple[Memory, float]]:
    """Other listed memories the reader may see with the cosine of the best pair of chunks; none without a vector."""
    instance, rows = scope.instance, readable(scope).filter(LISTED)
    allowed, values = rows.order_by().values("id").query.sql_with_params()
    sees_all = scope.private_memories_of is None
    sql = NEAREST.format(
        own_pieces=OWN_PIECES,
        neighbourhood=NEIGHBOURHOOD,
        private="" if sees_all else NOT_PRIVATE.format(readable=allowed),
        readable=allowed,
    )
    here = (instance.id, instance.embedding_generation)
    parameters: tuple[Any, ...] = (*here, instance.id, memory.id, *here, *(() if sees_all else values))
    with connection.cursor() as cursor:
        cursor.execute(sql, (*parameters, *here, memory.id, *values, limit))
        cosines = dict(cursor.fetchall())
    found = {row.id: row for row in rows.filter(id__in=cosines)} if cosines else {}
    note_private_reads(scope, found.values())
    return [(found[id], cosine) for id, cosine in cosines.items() if id in found]
