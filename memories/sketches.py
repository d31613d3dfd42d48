"""SQL for the chunks nearest to a sketch: by the instance's own vector index where it has one, by a scan where not.

The index holds what was there when it was built, and what was added since is scanned. So nobody who adds a memory
waits for an index.
"""

from typing import NamedTuple
from uuid import UUID

from instances.models import Instance


class VectorIndex(NamedTuple):
    """Which chunks an index holds, and how many of the nearest it is asked for."""

    instance: UUID
    generation: int
    up_to: UUID
    depth: int


def index_of(instance: Instance) -> VectorIndex | None:
    """The index that search may use. None if there is none, or one that finds too little."""
    up_to, generation = instance.indexed_up_to, instance.embedding_generation
    if up_to is None or not instance.indexed_depth or instance.indexed_generation != generation:
        return None
    return VectorIndex(instance.id, generation, up_to, instance.indexed_depth)


# The sketches are in a covering index, so that a scan of all of them reads no vector.
SCANNED = "instance_id = %(instance)s::uuid AND generation = %(generation)s::smallint AND live"
# The index of one instance is only seen by a statement that names the instance itself.
INDEXED = "instance_id = '{instance}' AND generation = {generation} AND live AND chunk_id <= '{up_to}'"

NEAR = """
    SELECT e.chunk_id AS id, e.memory_id FROM memories_embedding e
    WHERE {where} AND {wanted} IS NOT NULL AND {narrowed}
    ORDER BY e.bits <~> {wanted} LIMIT {most}
"""


def indexed(index: VectorIndex) -> str:
    return INDEXED.format(**index._asdict())


def since(index: VectorIndex | None) -> str:
    """What only a scan finds: all of it where there is no index."""
    return f"{SCANNED} AND chunk_id > '{index.up_to}'" if index else SCANNED


def near(where: str, wanted: str, most: int, narrowed: str = "true") -> str:
    return NEAR.format(where=where, wanted=wanted, most=most, narrowed=narrowed)


def nearest(index: VectorIndex | None, wanted: str, most: int, narrowed: str = "true") -> str:
    """Of what the index holds and of the rest the nearest so many each."""
    scan = near(since(index), wanted, most, narrowed)
    return f"({near(indexed(index), wanted, most, narrowed)}) UNION ALL ({scan})" if index else scan
