"""SQL for the chunks nearest to a point: by the instance's own vector index where it has one, by a scan where not.

A scan compares sketches, which are short. The index holds what was there when it was built, and what was added since is
scanned. So nobody who adds a memory waits for an index.
"""

from typing import NamedTuple
from uuid import UUID

from instances.models import Instance


class Point(NamedTuple):
    """What is compared with, as SQL for its vector and for its sketch."""

    vector: str
    sketch: str


# Of a statement whose step `own` has the vectors of a memory.
OWN = Point("own.vector", "own.bits")


class VectorIndex(NamedTuple):
    """Which chunks an index holds, how much of their vectors, and how many of the nearest it is asked for."""

    instance: UUID
    generation: int
    up_to: UUID
    dimensions: int
    depth: int


def index_of(instance: Instance) -> VectorIndex | None:
    """The index that search may use. None if there is none, or one that finds too little."""
    up_to, generation, dimensions = instance.indexed_up_to, instance.embedding_generation, instance.indexed_dimensions
    # A worker of an earlier version, which knows of no dimensions, may have built one since the migrations.
    if up_to is None or not instance.indexed_depth or not dimensions or instance.indexed_generation != generation:
        return None
    return VectorIndex(instance.id, generation, up_to, dimensions, instance.indexed_depth)


# The sketches are in a covering index, so that a scan of all of them reads no vector.
SCANNED = "instance_id = %(instance)s::uuid AND generation = %(generation)s::smallint AND live"
# The index of one instance is only seen by a statement that names the instance itself.
INDEXED = "instance_id = '{instance}' AND generation = {generation} AND live AND chunk_id <= '{up_to}'"
# Short vectors are filled up with zeros, which need not be indexed.
PART = "subvector({vector}, 1, {dimensions})::halfvec({dimensions})"

# Whoever is found by the index is compared by its vector at once: its row is being read anyway.
NEAR = """
    SELECT e.chunk_id AS id, e.memory_id, e.bits <~> {sketch} AS distance, {compared} AS compared
    FROM memories_embedding e
    WHERE {where} AND {sketch} IS NOT NULL AND {narrowed}
    ORDER BY {order} LIMIT {most}
"""

# A search through the index may get lost far from where it should be. Then some of a sample, one in 64 of what the
# index holds, are nearer than anything the step `found` has. Ids end at random.
SAMPLED = "get_byte(uuid_send(e.chunk_id), 15) < 4"
LOST = f"""(SELECT min(distance) FROM found) > (
    SELECT distance FROM (
        SELECT e.bits <~> {{sketch}} AS distance FROM memories_embedding e
        WHERE {SCANNED} AND e.chunk_id <= '{{up_to}}' AND {SAMPLED}
        OFFSET 0
    ) AS sample
    ORDER BY distance LIMIT 1 OFFSET 2
)"""
NEAREST = """
    WITH found AS MATERIALIZED ({found}), lost AS MATERIALIZED (SELECT {lost} AS yes)
    SELECT * FROM found UNION ALL ({later}) UNION ALL ({all_of_them})
"""


def indexed(index: VectorIndex) -> str:
    return INDEXED.format(**index._asdict())


def part(index: VectorIndex, vector: str) -> str:
    """What the index holds of a vector."""
    return PART.format(vector=vector, dimensions=index.dimensions)


def since(index: VectorIndex | None) -> str:
    """What only a scan finds: all of it where there is no index."""
    return f"{SCANNED} AND chunk_id > '{index.up_to}'" if index else SCANNED


def lost(index: VectorIndex, point: Point) -> str:
    """A condition: whether what the index has `found` is not what is nearest."""
    return LOST.format(sketch=point.sketch, up_to=index.up_to)


def near_by_scan(where: str, point: Point, most: int, narrowed: str = "true") -> str:
    asked = {"sketch": point.sketch, "compared": "NULL::float8", "narrowed": narrowed}
    return NEAR.format(where=where, order="distance", most=most, **asked)


def near_by_index(index: VectorIndex, point: Point, most: int, narrowed: str = "true") -> str:
    asked = {"sketch": point.sketch, "compared": f"e.vector <=> {point.vector}", "narrowed": narrowed}
    order = f"{part(index, 'e.vector')} <=> {part(index, point.vector)}"
    return NEAR.format(where=indexed(index), order=order, most=most, **asked)


def nearest(index: VectorIndex | None, point: Point, most: int, narrowed: str = "true") -> str:
    """By the index and a scan of the rest, and by a scan of everything where there is no index or it got lost."""
    if index is None:
        return near_by_scan(SCANNED, point, most, narrowed)
    return NEAREST.format(
        found=near_by_index(index, point, min(index.depth, most), narrowed),
        lost=lost(index, point),
        # A fifth at most has come since the index was made, and the root of a fifth is about a half.
        later=near_by_scan(since(index), point, most // 2, narrowed),
        all_of_them=near_by_scan(SCANNED, point, most, f"(SELECT yes FROM lost) AND {narrowed}"),
    )
