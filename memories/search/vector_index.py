"""An index over the vectors of one large instance, built while everybody goes on reading and writing.

It holds the chunks that are there when it is built; adding to it would make every insert many times slower. Later
ones are scanned beside it, and when they are a fifth of all, it is built anew. An index loses a neighbour now and then,
how often depends on the vectors. So it is tried out on the instance's own, and used only if it finds what a scan finds.
A search that gets lost in it altogether is noticed when it happens (`vectors_sql.py`).
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from statistics import mean
from typing import Any
from uuid import UUID

from django.db import OperationalError, connection

from accounts.access import Scope
from instances.models import Instance
from memories.filters import Filters
from memories.listing import lengths
from memories.search.hybrid import find
from memories.search.query import Query
from memories.search.vectors_sql import INDEXED, PART, SCANNED, VectorIndex, indexed, since

WORTH_INDEXING = 10_000
BUILT_ANEW_AT_ONE_IN = 5
# An index that does not fit into memory while it is built takes more than twice as long.
BYTES_PER_LINKS, BYTES_PER_NUMBER, MOST_MB = 1_000, 2, 1024
# How many of the nearest it may be asked for. More are not asked for once it finds nearly all of what a scan finds, or
# when they find next to no more.
DEPTHS = (200, 400, 1_000, 2_000)
TRIED_WITH, NEAREST = 200, 20
# What models make; shorter vectors are filled up with zeros.
LENGTHS = (384, 512, 768, 1024, 1536)
# So much of a long vector is tried first: an index of it is a third as large and searched in half the time. It only has
# to find the neighbourhood, among so many at the most; whole vectors put that in order.
PART_LENGTH, PART_DEPTH = 512, 400
NEARLY_ALL, AT_LEAST, NEXT_TO_NOTHING = 0.998, 0.995, 0.001

CREATE = f"""
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{name}} ON memories_embedding
USING hnsw (({PART.replace("{vector}", "vector")}) halfvec_cosine_ops) WITH (m = 16, ef_construction = 200)
WHERE {INDEXED}
"""
# Never less than the server gives by itself.
ENOUGH_MEMORY = """
SELECT set_config('maintenance_work_mem', greatest(setting::bigint, %s::bigint * 1024)::text || 'kB', false)
FROM pg_settings WHERE name = 'maintenance_work_mem'
"""
# Several processes build together in memory that they share, of which a container often has little.
ALONE = "SET max_parallel_maintenance_workers = 0"
OWN = "SELECT relname FROM pg_class WHERE relkind = 'i' AND starts_with(relname, %s)"
UNFINISHED = f"{OWN} AND oid IN (SELECT indexrelid FROM pg_index WHERE NOT indisvalid)"
OF_NOBODY = """
SELECT relname FROM pg_class
WHERE relkind = 'i' AND (starts_with(relname, 'embedding_of_') OR starts_with(relname, 'vectors_of_') AND NOT EXISTS (
    SELECT FROM instances_instance i WHERE starts_with(relname, 'vectors_of_' || replace(i.id::text, '-', ''))
))
"""
LAST = f"SELECT chunk_id FROM memories_embedding WHERE {SCANNED} ORDER BY chunk_id DESC LIMIT 1"
# Neither the oldest nor the newest, but the same ones whenever they are asked for.
SOME = """
SELECT memory_id, vector::vector(1536)::real[] FROM memories_embedding
WHERE {indexed} AND chunk_id = ANY(ARRAY(
    SELECT chunk_id FROM memories_embedding WHERE {indexed} ORDER BY md5(chunk_id::text) LIMIT {some}
))
"""


def is_due(scope: Scope) -> bool:
    """Whether an index is missing, or too much has been added since it was built."""
    instance = scope.instance
    if instance.indexed_up_to is None or instance.indexed_generation != instance.embedding_generation:
        return True
    index = VectorIndex(
        instance.id,
        instance.embedding_generation,
        instance.indexed_up_to,
        instance.indexed_dimensions,
        instance.indexed_depth,
    )
    with connection.cursor() as cursor:
        cursor.execute(OWN, [_name_of(index)])
        if index.depth and not cursor.fetchone():
            return True
        cursor.execute(f"SELECT count(*) FROM memories_embedding WHERE {since(index)}", _named(instance))
        return bool(cursor.fetchone()[0] * BUILT_ANEW_AT_ONE_IN > lengths(scope).all)


def build_index(scope: Scope) -> None:
    """Build the index of the generation in use, and drop earlier ones. Not inside a transaction."""
    instance = scope.instance
    with connection.cursor() as cursor:
        cursor.execute(LAST, _named(instance))
        last = cursor.fetchone()
    if last is None:
        return
    index = VectorIndex(instance.id, instance.embedding_generation, last[0], dimensions=0, depth=0)
    some = _some(index)
    length = length_of([vector for _, vector in some])
    for dimensions in sorted({min(length, PART_LENGTH), length}):
        index = index._replace(dimensions=dimensions)
        _create_index(scope, index)
        index = index._replace(depth=_depth(scope, index, some, is_part=dimensions < length))
        if index.depth:
            break
    Instance.objects.filter(id=instance.id).update(**noted(index))
    _drop(OWN, [_name(instance)], keep=_name_of(index) if index.depth else "")


def give_up_index(scope: Scope) -> None:
    Instance.objects.filter(id=scope.instance.id).update(indexed_generation=0, indexed_up_to=None, indexed_depth=0)
    _drop(OWN, [_name(scope.instance)])


def noted(index: VectorIndex) -> dict[str, Any]:
    """What an instance says of its index."""
    return {f"indexed_{name}": value for name, value in index._asdict().items() if name != "instance"}


def _some(index: VectorIndex) -> list[tuple[UUID, list[float]]]:
    """Memories with their vectors."""
    with connection.cursor() as cursor:
        cursor.execute(SOME.format(indexed=indexed(index), some=TRIED_WITH))
        return list(cursor.fetchall())


def length_of(vectors: Sequence[Sequence[float]]) -> int:
    """How many of their numbers mean something, as models have them."""
    used = max((place for vector in vectors for place, number in enumerate(vector, 1) if number), default=0)
    return next(length for length in LENGTHS if length >= used)


def _depth(scope: Scope, index: VectorIndex, some: Sequence[tuple[UUID, Sequence[float]]], *, is_part: bool) -> int:
    """Of how many the index has to be asked for to find what a scan finds; 0 if it finds too little of it.

    An index of a part of the vectors has to find nearly all of it: one of the whole is still to come.
    """
    wanted = [_cosines(scope, memory, vector, index) for memory, vector in some]
    shares: dict[int, float] = {}
    for depth in (depth for depth in DEPTHS if depth <= PART_DEPTH or not is_part):
        asked = index._replace(depth=depth)
        found = [_cosines(scope, memory, vector, asked) for memory, vector in some]
        shares[depth] = mean(map(_share, found, wanted))
        if shares[depth] >= NEARLY_ALL:
            break
    most = max(shares.values())
    enough = (depth for depth, share in shares.items() if share >= most - NEXT_TO_NOTHING)
    return next(enough) if most >= (NEARLY_ALL if is_part else AT_LEAST) else 0


def _cosines(scope: Scope, memory: UUID, vector: Sequence[float], index: VectorIndex) -> list[float]:
    """Of the nearest others, found as a search would find them if the instance had this index."""
    instance = copy(scope.instance)
    for name, value in noted(index).items():
        setattr(instance, name, value)
    hits, _ = find(replace(scope, instance=instance), Query("x"), Filters(), "vector", vector, NEAREST + 1, 0)
    return [hit.found.similarity or 0 for hit in hits if hit.memory.id != memory][:NEAREST]


def _share(found: Sequence[float], wanted: Sequence[float]) -> float:
    """How many are as near as the last of those wanted. Of two that are equally near either is right."""
    return sum(cosine >= wanted[-1] - 1e-9 for cosine in found) / len(wanted) if wanted else 1.0


def _create_index(scope: Scope, index: VectorIndex) -> None:
    create = CREATE.format(name=_name_of(index), **index._asdict())
    size = BYTES_PER_LINKS + BYTES_PER_NUMBER * index.dimensions
    try:
        _create(scope.instance, create, ENOUGH_MEMORY, min(lengths(scope).all * size // 2**20 + 1, MOST_MB))
    except OperationalError:  # there is not as much memory that processes can share
        _create(scope.instance, create, ALONE)


def _create(instance: Instance, create: str, prepare: str, *parameters: int) -> None:
    """A build that fails, or is interrupted, leaves an index that nobody can use and that takes up room."""
    _drop(UNFINISHED, [_name(instance)])
    with connection.cursor() as cursor:
        cursor.execute(prepare, parameters)
        try:
            cursor.execute(create)
        finally:
            cursor.execute("RESET maintenance_work_mem")
            cursor.execute("RESET max_parallel_maintenance_workers")
            _drop(UNFINISHED, [_name(instance)])


def drop_forgotten() -> None:
    """The indexes of instances that were deleted, those a worker of an earlier version has built, and what was left
    of a build by a worker that was killed, if the instance has no need of one any more."""
    _drop(OF_NOBODY, [])
    _drop(UNFINISHED, ["vectors_of_"])


def _drop(found_by: str, parameters: Sequence[str], *, keep: str = "") -> None:
    with connection.cursor() as cursor:
        cursor.execute(found_by, parameters)
        for (name,) in cursor.fetchall():
            if name != keep:
                cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


def _named(instance: Instance) -> dict[str, Any]:
    return {"instance": instance.id, "generation": instance.embedding_generation}


def _name(instance: Instance) -> str:
    """What the names of its indexes begin with."""
    return f"vectors_of_{instance.id.hex}_"


def _name_of(index: VectorIndex) -> str:
    return f"vectors_of_{index.instance.hex}_{index.generation}_{index.up_to.hex[-8:]}_{index.dimensions}"
