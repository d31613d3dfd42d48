"""An index over the vectors of one huge instance, built while everybody goes on reading and writing.

Below, a scan of the sketches in a covering index is fast enough, loses nothing and costs writers nothing; an index of
its own makes every single insert several times slower, so only instances that need one get one.
"""

from django.db import OperationalError, connection

from accounts.access import Scope
from instances.models import Instance
from memories.listing import lengths

WORTH_INDEXING = 1_000_000
# An index that does not fit into memory while it is built takes more than twice as long.
MB_PER_THOUSAND, MOST_MB = 2, 1024

CREATE = """
CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON memories_embedding
USING hnsw (bits bit_hamming_ops) WITH (m = 24, ef_construction = 200)
WHERE instance_id = '{instance}' AND generation = {generation} AND live
"""
IS_VALID = """
SELECT i.indisvalid FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid WHERE c.relname = %s
"""
# Never less than the server gives by itself.
ENOUGH_MEMORY = """
SELECT set_config('maintenance_work_mem', greatest(setting::bigint, %s::bigint * 1024)::text || 'kB', false)
FROM pg_settings WHERE name = 'maintenance_work_mem'
"""
OWN = "SELECT relname FROM pg_class WHERE relkind = 'i' AND starts_with(relname, %s)"


def build_index(scope: Scope) -> None:
    """Build the index of the generation in use, and drop those of earlier ones. Not inside a transaction."""
    instance = scope.instance
    name = _name(instance, instance.embedding_generation)
    create = CREATE.format(name=name, instance=instance.id, generation=instance.embedding_generation)
    try:
        _create(name, create, min(lengths(scope).all * MB_PER_THOUSAND // 1000, MOST_MB))
    except OperationalError:  # there is not as much memory that processes can share
        _create(name, create)
    Instance.objects.filter(id=instance.id).update(indexed_generation=instance.embedding_generation)
    drop_indexes(instance, keep=name)


def _create(name: str, create: str, mb: int = 0) -> None:
    with connection.cursor() as cursor:
        cursor.execute(IS_VALID, [name])
        if cursor.fetchone() == (False,):  # left behind by a build that was interrupted
            cursor.execute(f"DROP INDEX CONCURRENTLY {name}")
        if mb:
            cursor.execute(ENOUGH_MEMORY, [mb])
        try:
            cursor.execute(create)
        finally:
            cursor.execute("RESET maintenance_work_mem")


def drop_indexes(instance: Instance, *, keep: str = "") -> None:
    with connection.cursor() as cursor:
        cursor.execute(OWN, [_name(instance)])
        for (name,) in cursor.fetchall():
            if name != keep:
                cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


def _name(instance: Instance, generation: int | str = "") -> str:
    return f"embedding_of_{instance.id.hex}_{generation}"
