"""The memories nearest to a memory, and how near two memories are, by the vectors that search uses."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from accounts.access import Scope
from memories.audit import note_private_reads
from memories.filters import as_sql, readable
from memories.models import LISTED, Memory
from memories.search.narrowing import each_if
from memories.search.planning import prepare_transaction, rerank_depth
from memories.search.sizes import EXACT_UP_TO
from memories.search.vectors_sql import OWN, index_of, nearest

# A very long memory is compared by its first chunks.
OWN_PIECES = 8

# Sketches or an index find candidates, full vectors rank them. In a small instance every chunk is a candidate.
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
    """Other listed memories that the reader may see, each with the cosine of its best pair of chunks.

    Empty if the memory has no vector yet.
    """
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


# The best cosine between the first chunks of both memories of a pair, for a whole page of pairs.
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
    """The cosine of each pair of memories of which both have vectors. The caller checks who may read them."""
    named: dict[str, Any] = {
        "first": [a for a, _ in pairs],
        "second": [b for _, b in pairs],
        "instance": scope.instance.id,
        "generation": scope.instance.embedding_generation,
    }
    with connection.cursor() as cursor:
        cursor.execute(COSINES.format(pieces=OWN_PIECES), named)
        return {(a, b): cosine for a, b, cosine in cursor.fetchall()}
