"""The statements that find missing vectors, store vectors, and delete those of an earlier model."""

# A scalar subquery that IS NULL, here and below, instead of NOT EXISTS, which the planner turns into a join. For an
# instance that was filled after the last ANALYZE it expects one row and would choose a nested loop over all rows.
WITHOUT_VECTOR = """ AND (
    SELECT true FROM memories_embedding e
    WHERE e.instance_id = %(instance)s AND e.chunk_id = c.id AND e.generation = %(generation)s
) IS NULL
"""
# A partial index covers the memories that are not ready. Refused texts are not tried again with every new memory, but
# every night and when somebody asks for it.
OF_MEMORIES = (
    """
FROM memories_memory m JOIN memories_chunk c ON c.instance_id = %(instance)s AND c.memory_id = m.id
WHERE m.instance_id = %(instance)s AND NOT m.embedding = 'ready' AND m.embedding = '{state}' AND c.live
  AND m.id >= %(memory)s AND (m.id, c.id) > (%(memory)s, %(chunk)s)"""
    + WITHOUT_VECTOR
)
PENDING = OF_MEMORIES.format(state="pending")
REFUSED = OF_MEMORIES.format(state="failed")
ALL = "FROM memories_chunk c WHERE c.instance_id = %(instance)s AND c.id > %(chunk)s" + WITHOUT_VECTOR

# Look up the chunks by the text and then their vectors, each by index. OFFSET 0 keeps this order: for an instance that
# has not been analysed yet the planner would start with all its vectors.
SAME_TEXT = """
    SELECT {what} FROM (
        SELECT id FROM memories_chunk WHERE instance_id = %(instance)s AND text_hash = {of}.text_hash OFFSET 0
    ) AS other CROSS JOIN LATERAL (
        SELECT vector FROM memories_embedding
        WHERE instance_id = %(instance)s AND chunk_id = other.id AND generation = %(generation)s OFFSET 0
    ) AS e
    LIMIT 1
"""
BATCH = f"""
WITH batch AS MATERIALIZED (
    SELECT c.id, c.memory_id, c.who, c.content, c.text_hash {{source}} ORDER BY {{order}} LIMIT %(limit)s
)
SELECT id, memory_id, who, content, ({SAME_TEXT.format(what="true", of="batch")}) IS NOT NULL FROM batch
"""

# True unless the instance has switched to another generation. The lock makes this statement and a switch wait for each
# other, so no vectors are stored for a generation after it was dropped; those stored before are deleted with it.
NOT_SWITCHED = "(SELECT embedding_generation FROM instances_instance WHERE id = %(instance)s FOR SHARE) = %(searched)s"

# The same text already has a vector, perhaps for another memory: copy it instead of asking for it again.
REUSE = f"""
INSERT INTO memories_embedding (instance_id, chunk_id, generation, memory_id, live, vector)
SELECT %(instance)s, c.id, %(generation)s, c.memory_id, c.live, same.vector
FROM memories_chunk c CROSS JOIN LATERAL ({SAME_TEXT.format(what="e.vector", of="c")}) AS same
WHERE c.instance_id = %(instance)s AND c.id = ANY(%(ids)s) AND {NOT_SWITCHED}
ORDER BY c.id FOR SHARE OF c
ON CONFLICT DO NOTHING
RETURNING chunk_id
"""

VECTOR_TYPE = "SELECT 'vector'::regtype::oid::bigint"
NEW = "unnest(%(ids)s::uuid[], %(vectors)s::vector[]) AS new (id, vector)"
# A chunk that was deleted while its text was being embedded is not found here and skipped. The chunk is locked, because
# a transaction that moves it to a version at the same moment would not see its vector.
STORE = f"""
INSERT INTO memories_embedding (instance_id, chunk_id, generation, memory_id, live, vector)
SELECT %(instance)s, c.id, %(generation)s, c.memory_id, c.live, l2_normalize(new.vector)::halfvec(1536)
FROM {NEW} CROSS JOIN LATERAL (
    SELECT c.id, c.memory_id, c.live FROM memories_chunk c
    WHERE c.instance_id = %(instance)s AND c.id = new.id FOR SHARE
) AS c
WHERE {NOT_SWITCHED}
ON CONFLICT DO NOTHING
"""

STORE_BY_MEMORY = f"""
WITH stored AS (
    INSERT INTO memories_embedding (instance_id, chunk_id, generation, memory_id, live, vector)
    SELECT %(instance)s, c.id, %(generation)s, c.memory_id, true, l2_normalize(new.vector)::halfvec(1536)
    FROM {NEW}
    JOIN memories_chunk c ON c.instance_id = %(instance)s AND c.memory_id = new.id AND c.live
    RETURNING memory_id
)
UPDATE memories_memory SET embedding = 'ready', embedding_error = ''
WHERE instance_id = %(instance)s AND NOT embedding = 'ready' AND id IN (SELECT memory_id FROM stored)
"""

HAS_ALL_VECTORS = f"""
WHERE m.instance_id = %(instance)s AND NOT m.embedding = 'ready'
  AND {NOT_SWITCHED}
  AND (
    SELECT true FROM memories_chunk c
    WHERE c.instance_id = %(instance)s AND c.memory_id = m.id AND c.live AND (
        SELECT true FROM memories_embedding e
        WHERE e.instance_id = %(instance)s AND e.chunk_id = c.id AND e.generation = %(generation)s
    ) IS NULL
    LIMIT 1
) IS NULL
"""
# Two statements, one for some memories and one for all: with an optional condition a generic plan would compare
# everything pending with each of the given memories.
ONLY_THESE = " AND m.id = ANY(%(memories)s)"

# Rows are locked first and checked again by MARK_READY: a statement that has waited for a row lock sees the new row but
# still the old chunks. Only rows that get marked are locked, in the order of their ids, as others lock several too.
LOCK = "ORDER BY m.id FOR NO KEY UPDATE OF m"
LOCK_ALL_READY = f"SELECT m.id FROM memories_memory m {HAS_ALL_VECTORS} {LOCK}"
LOCK_READY = f"SELECT m.id FROM memories_memory m {HAS_ALL_VECTORS} {ONLY_THESE} {LOCK}"
MARK_READY = f"UPDATE memories_memory m SET embedding = 'ready', embedding_error = '' {HAS_ALL_VECTORS} {ONLY_THESE}"

DELETE_OTHERS = "DELETE FROM memories_embedding WHERE instance_id = %(instance)s AND generation <> %(generation)s"
# Memories can be ready and lack a vector if they were saved just before a switch, which deleted it, or changed while an
# earlier release marked them ready. Takes 0.14 s for 100,000 memories, with or without statistics.
MARK_PENDING = f"""
WITH locked AS MATERIALIZED (
    SELECT m.id FROM memories_memory m
    WHERE m.instance_id = %(instance)s AND m.embedding = 'ready' AND {NOT_SWITCHED} AND m.id IN (
        SELECT c.memory_id FROM memories_chunk c WHERE c.instance_id = %(instance)s AND c.live {WITHOUT_VECTOR}
    )
    {LOCK}
)
UPDATE memories_memory SET embedding = 'pending' WHERE instance_id = %(instance)s AND id IN (SELECT id FROM locked)
"""
