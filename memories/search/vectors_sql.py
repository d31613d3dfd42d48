"""SQL that finds the chunks nearest to a point: by the instance's vector index if it has one, otherwise by a scan.

A scan compares sketches, which are short. An index is never added to, because that would slow every insert down: it
holds the chunks that were there when it was built, and later ones are scanned.
"""

from typing import NamedTuple
from uuid import UUID

from instances.models import Instance


class Point(NamedTuple):
    """SQL expressions for the vector and the sketch that chunks are compared with."""

    vector: str
    sketch: str


# For a statement with a step `own` that has the vectors of one memory.
OWN = Point("own.vector", "own.bits")


class VectorIndex(NamedTuple):
    """The chunks that an index holds, how many dimensions of each vector, and how many chunks it is asked for."""

    instance: UUID
    generation: int
    up_to: UUID
    dimensions: int
    depth: int


def index_of(instance: Instance) -> VectorIndex | None:
    """The index that search uses. None if there is none or if its trial has found too little."""
    up_to, generation, dimensions = instance.indexed_up_to, instance.embedding_generation, instance.indexed_dimensions
    # A worker of an earlier version, which sets no dimensions, may have built an index after the migrations.
    if up_to is None or not instance.indexed_depth or not dimensions or instance.indexed_generation != generation:
        return None
    return VectorIndex(instance.id, generation, up_to, dimensions, instance.indexed_depth)


# Served by the covering index that contains the sketches, so that a scan reads no vector.
SCANNED = "instance_id = %(instance)s::uuid AND generation = %(generation)s::smallint AND live"
# Literals, because a generic plan can use a partial index only if its condition is in the statement as written.
INDEXED = "instance_id = '{instance}' AND generation = {generation} AND live AND chunk_id <= '{up_to}'"
# Short vectors are padded with zeros, which need not be indexed.
PART = "subvector({vector}, 1, {dimensions})::halfvec({dimensions})"

# What the index finds is compared by its full vector at once (`compared`), because its row is read anyway.
NEAR = """
    SELECT e.chunk_id AS id, e.memory_id, e.bits <~> {sketch} AS distance, {compared} AS compared
    FROM memories_embedding e
    WHERE {where} AND {sketch} IS NOT NULL AND {narrowed}
    ORDER BY {order} LIMIT {most}
"""

# A search through the graph of an index can end in the wrong place. That is noticed by a sample: one in 64 of the
# indexed chunks, chosen by the random last byte of their ids. A search is lost if three of the sample are nearer than
# everything in the step `found`.
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
    """The part of a vector that the index holds."""
    return PART.format(vector=vector, dimensions=index.dimensions)


def since(index: VectorIndex | None) -> str:
    """A condition for the chunks that only a scan finds: all of them if there is no index."""
    return f"{SCANNED} AND chunk_id > '{index.up_to}'" if index else SCANNED


def lost(index: VectorIndex, point: Point) -> str:
    """A condition that is true if the search through the index got lost."""
    return LOST.format(sketch=point.sketch, up_to=index.up_to)


def near_by_scan(where: str, point: Point, most: int, narrowed: str = "true") -> str:
    columns = {"sketch": point.sketch, "compared": "NULL::float8", "narrowed": narrowed}
    return NEAR.format(where=where, order="distance", most=most, **columns)


def near_by_index(index: VectorIndex, point: Point, most: int, narrowed: str = "true") -> str:
    columns = {"sketch": point.sketch, "compared": f"e.vector <=> {point.vector}", "narrowed": narrowed}
    order = f"{part(index, 'e.vector')} <=> {part(index, point.vector)}"
    return NEAR.format(where=indexed(index), order=order, most=most, **columns)


def nearest(index: VectorIndex | None, point: Point, most: int, narrowed: str = "true") -> str:
    """Search the index and scan what came later, or scan everything if there is no index or the search got lost."""
    if index is None:
        return near_by_scan(SCANNED, point, most, narrowed)
    return NEAREST.format(
        found=near_by_index(index, point, min(index.depth, most), narrowed),
        lost=lost(index, point),
        # At most a fifth is newer than the index. Depth grows with the root of the size; that of a fifth is about
        # half.
        later=near_by_scan(since(index), point, most // 2, narrowed),
        all_of_them=near_by_scan(SCANNED, point, most, f"(SELECT yes FROM lost) AND {narrowed}"),
    )
