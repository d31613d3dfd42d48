"""The memories nearest to one memory, by the vectors search uses now."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from accounts.access import Scope
from memories.audit import note_private_reads
from memories.filters import as_sql, readable
from memories.models import LISTED, Memory
from memories.search.hybrid import prepare_transaction, rerank_depth
from memories.search.narrowing import each_if
from memories.search.sizes import EXACT_UP_TO
from memories.search.vectors_sql import OWN, index_of, nearest

# A very long memory is compared by its first pieces.
OWN_PIECES = 8

# Sketches or an index find the neighbourhood, the full vectors put it in order. The neighbourhood of a small instance
# is all of it.
NEAREST = """
WITH own AS MATERIALIZED (
    SELECT e.vector, e.bits
    FROM memories_chunk c
    JOIN memories_embedding e
      ON e.instance_id = %(instance)s::uuid AND e.chunk_id = c.id AND e.generation = %(generation)s::smallint
    WHERE c.instance_id = %(instance)s::uuid AND c.memory_id = %(memory)s::uuid AND c.version_id IS NULL
    ORDER BY c.position LIMIT {own_pieces}
),
rough AS MATERIALIZED (
    SELECT DISTINCT near.id FROM own CROSS JOIN LATERAL ({near}) AS near
)
SELECT e.memory_id, 1 - min(e.vector <=> own.vector) AS cosine
FROM rough r
JOIN memories_embedding e
  ON e.instance_id = %(instance)s::uuid AND e.chunk_id = r.id AND e.generation = %(generation)s::smallint
CROSS JOIN own
WHERE e.memory_id <> %(memory)s::uuid
GROUP BY e.memory_id
ORDER BY cosine DESC, e.memory_id DESC
LIMIT %(limit)s::bigint
"""


def similar(scope: Scope, memory: Memory, limit: int = 5) -> list[tuple[Memory, float]]:
    """Other listed memories the reader may see with the cosine of the best pair of chunks; none without a vector."""
    instance, rows = scope.instance, readable(scope).filter(LISTED)
    parameters: dict[str, Any] = {
        "instance": instance.id,
        "generation": instance.embedding_generation,
        "memory": memory.id,
        "limit": limit,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        length = prepare_transaction(scope, cursor).all
        most = EXACT_UP_TO if length <= EXACT_UP_TO else rerank_depth(length)
        may_be_read = each_if(as_sql(rows.order_by().values("id"), parameters)).of("e.memory_id")
        sql = NEAREST.format(own_pieces=OWN_PIECES, near=nearest(index_of(instance), OWN, most, may_be_read))
        cursor.execute(sql, parameters)
        cosines = dict(cursor.fetchall())
    found = {row.id: row for row in rows.filter(id__in=cosines)} if cosines else {}
    note_private_reads(scope, found.values())
    return [(found[id], cosine) for id, cosine in cosines.items() if id in found]


# Each pair once, by the first pieces of both: one statement for a whole page.
COSINES = """
SELECT pair.a, pair.b, max(1 - (ea.vector <=> eb.vector))
FROM unnest(%(first)s::uuid[], %(second)s::uuid[]) AS pair (a, b)
JOIN memories_chunk ca ON ca.instance_id = %(instance)s AND ca.memory_id = pair.a AND ca.version_id IS NULL
    AND ca.position < {pieces}
JOIN memories_embedding ea ON ea.instance_id = %(instance)s AND ea.chunk_id = ca.id AND ea.generation = %(generation)s
JOIN memories_chunk cb ON cb.instance_id = %(instance)s AND cb.memory_id = pair.b AND cb.version_id IS NULL
    AND cb.position < {pieces}
JOIN memories_embedding eb ON eb.instance_id = %(instance)s AND eb.chunk_id = cb.id AND eb.generation = %(generation)s
GROUP BY pair.a, pair.b
"""


def cosines(scope: Scope, pairs: Sequence[tuple[UUID, UUID]]) -> dict[tuple[UUID, UUID], float]:
    """How near the two memories of each pair are, if both have vectors. Who may read them is the caller's business."""
    named: dict[str, Any] = {
        "first": [a for a, _ in pairs],
        "second": [b for _, b in pairs],
        "instance": scope.instance.id,
        "generation": scope.instance.embedding_generation,
    }
    with connection.cursor() as cursor:
        cursor.execute(COSINES.format(pieces=OWN_PIECES), named)
        return {(a, b): cosine for a, b, cosine in cursor.fetchall()}
