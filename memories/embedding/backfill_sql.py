"""The statements that find missing vectors, store them, and give up those of an earlier model."""

# Subqueries for a single value, here and below: NOT EXISTS is turned into a join, and of an instance that was filled
# since the last ANALYZE PostgreSQL expects one row and joins all of them with all.
WITHOUT_VECTOR = """ AND (
    SELECT true FROM memories_embedding e
    WHERE e.instance_id = %(instance)s AND e.chunk_id = c.id AND e.generation = %(generation)s
) IS NULL
"""
# A partial index knows the memories whose text is newer than their vectors. What was refused is not asked for again
# with every new memory, but when somebody wants it, and every night.
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

# From the text to its chunks to their vectors, each by its index: left to choose, PostgreSQL begins with all vectors of
# an instance that is new to it.
TWIN = """
    SELECT {what} FROM (
        SELECT id FROM memories_chunk WHERE instance_id = %(instance)s AND text_hash = {of}.text_hash OFFSET 0
    ) AS twin CROSS JOIN LATERAL (
        SELECT vector FROM memories_embedding
        WHERE instance_id = %(instance)s AND chunk_id = twin.id AND generation = %(generation)s OFFSET 0
    ) AS e
    LIMIT 1
"""
BATCH = f"""
WITH batch AS MATERIALIZED (
    SELECT c.id, c.memory_id, c.who, c.content, c.text_hash {{source}} ORDER BY {{order}} LIMIT %(limit)s
)
SELECT id, memory_id, who, content, ({TWIN.format(what="true", of="batch")}) IS NOT NULL FROM batch
"""

# Waits for a switch, or makes it wait: nobody stores vectors of a generation that was given up, and those stored until
# then go with it.
STILL = "(SELECT embedding_generation FROM instances_instance WHERE id = %(instance)s FOR SHARE) = %(searched)s"

# The same text was embedded before, perhaps for another memory: copy its vector instead of asking again.
REUSE = f"""
INSERT INTO memories_embedding (instance_id, chunk_id, generation, memory_id, live, vector)
SELECT %(instance)s, c.id, %(generation)s, c.memory_id, c.live, same.vector
FROM memories_chunk c CROSS JOIN LATERAL ({TWIN.format(what="e.vector", of="c")}) AS same
WHERE c.instance_id = %(instance)s AND c.id = ANY(%(ids)s) AND {STILL}
ORDER BY c.id FOR SHARE OF c
ON CONFLICT DO NOTHING
RETURNING chunk_id
"""

VECTOR_TYPE = "SELECT 'vector'::regtype::oid::bigint"
NEW = "unnest(%(ids)s::uuid[], %(vectors)s::vector[]) AS new (id, vector)"
# A chunk that was deleted while its text was away is simply not there any more. Locked, because whoever makes it a part
# of a version just now would not see its vector.
STORE = f"""
INSERT INTO memories_embedding (instance_id, chunk_id, generation, memory_id, live, vector)
SELECT %(instance)s, c.id, %(generation)s, c.memory_id, c.live, l2_normalize(new.vector)::halfvec(1536)
FROM {NEW} CROSS JOIN LATERAL (
    SELECT c.id, c.memory_id, c.live FROM memories_chunk c
    WHERE c.instance_id = %(instance)s AND c.id = new.id FOR SHARE
) AS c
WHERE {STILL}
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
  AND {STILL}
  AND (
    SELECT true FROM memories_chunk c
    WHERE c.instance_id = %(instance)s AND c.memory_id = m.id AND c.live AND (
        SELECT true FROM memories_embedding e
        WHERE e.instance_id = %(instance)s AND e.chunk_id = c.id AND e.generation = %(generation)s
    ) IS NULL
    LIMIT 1
) IS NULL
"""
# Not one statement for some and for all: a generic plan would then compare all that is pending with each of these.
AMONG_THESE = " AND m.id = ANY(%(memories)s)"

# First, and looked at again when it is held: whoever waits for a writer's row is shown the row as it is then, but the
# chunks as they were before. In the order of their ids, as others hold several, and only what is marked then.
HOLD = "ORDER BY m.id FOR NO KEY UPDATE OF m"
HOLD_ALL_READY = f"SELECT m.id FROM memories_memory m {HAS_ALL_VECTORS} {HOLD}"
HOLD_READY = f"SELECT m.id FROM memories_memory m {HAS_ALL_VECTORS} {AMONG_THESE} {HOLD}"
MARK_READY = f"UPDATE memories_memory m SET embedding = 'ready', embedding_error = '' {HAS_ALL_VECTORS} {AMONG_THESE}"

FORGET = "DELETE FROM memories_embedding WHERE instance_id = %(instance)s AND generation <> %(generation)s"
# Ready, but without all its vectors: saved just before a switch, by vectors that are gone now, or changed while an
# earlier release marked it. Takes 0.14 s for 100,000 memories, whatever PostgreSQL knows of them.
MARK_PENDING = f"""
WITH held AS MATERIALIZED (
    SELECT m.id FROM memories_memory m
    WHERE m.instance_id = %(instance)s AND m.embedding = 'ready' AND {STILL} AND m.id IN (
        SELECT c.memory_id FROM memories_chunk c WHERE c.instance_id = %(instance)s AND c.live {WITHOUT_VECTOR}
    )
    {HOLD}
)
UPDATE memories_memory SET embedding = 'pending' WHERE instance_id = %(instance)s AND id IN (SELECT id FROM held)
"""
