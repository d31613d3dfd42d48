"""The HNSW index over the vectors of one large instance, built concurrently.

It holds the chunks that exist when it is built, because adding to it would make every insert many times slower. Later
chunks are scanned, and when they are a fifth of all, the index is rebuilt. How many neighbours an index misses depends
on the vectors, so it is tried with some of the instance's own and used only if it finds nearly all that a scan finds.
A search that gets lost in it is noticed when it happens (`vectors_sql.py`).
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
REBUILT_AT_ONE_IN = 5
# Building takes more than twice as long if the index does not fit into maintenance_work_mem.
BYTES_PER_LINKS, BYTES_PER_NUMBER, MOST_MB = 1_000, 2, 1024
# How many candidates the index is asked for: the first of these with which it finds NEARLY_ALL, or else the first that
# is within NO_MORE of the best. If the best is less than AT_LEAST, the index is not used.
DEPTHS = (200, 400, 1_000, 2_000)
NEARLY_ALL, AT_LEAST, NO_MORE = 0.998, 0.995, 0.001
# How many vectors it is tried with, and how many of the nearest to each are compared.
TRIED_WITH, NEAREST = 200, 20
# The lengths of vectors that models make; shorter ones are padded with zeros.
LENGTHS = (384, 512, 768, 1024, 1536)
# An index over the first 512 numbers of long vectors is tried first: it is a third as large and searched in half the
# time. It may be asked for up to 400 candidates, which are then ranked by their whole vectors.
PART_LENGTH, PART_DEPTH = 512, 400

CREATE = f"""
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{name}} ON memories_embedding
USING hnsw (({PART.replace("{vector}", "vector")}) halfvec_cosine_ops) WITH (m = 16, ef_construction = 200)
WHERE {INDEXED}
"""
# Raise maintenance_work_mem, but never lower it.
ENOUGH_MEMORY = """
SELECT set_config('maintenance_work_mem', greatest(setting::bigint, %s::bigint * 1024)::text || 'kB', false)
FROM pg_settings WHERE name = 'maintenance_work_mem'
"""
# A parallel build needs shared memory, of which a container often has little.
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
# A sample in an order that is random but always the same.
SAMPLE = """
SELECT memory_id, vector::vector(1536)::real[] FROM memories_embedding
WHERE {indexed} AND chunk_id = ANY(ARRAY(
    SELECT chunk_id FROM memories_embedding WHERE {indexed} ORDER BY md5(chunk_id::text) LIMIT {most}
))
"""


def is_due(scope: Scope) -> bool:
    """Whether the index is missing or too much has been added since it was built."""
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
        return bool(cursor.fetchone()[0] * REBUILT_AT_ONE_IN > lengths(scope).all)


def build_index(scope: Scope) -> None:
    """Build the index for the generation in use and drop earlier ones. Must not run in a transaction."""
    instance = scope.instance
    with connection.cursor() as cursor:
        cursor.execute(LAST, _named(instance))
        last = cursor.fetchone()
    if last is None:
        return
    index = VectorIndex(instance.id, instance.embedding_generation, last[0], dimensions=0, depth=0)
    sample = _sample(index)
    length = length_of([vector for _, vector in sample])
    for dimensions in sorted({min(length, PART_LENGTH), length}):
        index = index._replace(dimensions=dimensions)
        _create_index(scope, index)
        index = index._replace(depth=_depth(scope, index, sample, is_part=dimensions < length))
        if index.depth:
            break
    Instance.objects.filter(id=instance.id).update(**noted(index))
    _drop(OWN, [_name(instance)], keep=_name_of(index) if index.depth else "")


def give_up_index(scope: Scope) -> None:
    Instance.objects.filter(id=scope.instance.id).update(indexed_generation=0, indexed_up_to=None, indexed_depth=0)
    _drop(OWN, [_name(scope.instance)])


def noted(index: VectorIndex) -> dict[str, Any]:
    """The fields of an instance that describe its index."""
    return {f"indexed_{name}": value for name, value in index._asdict().items() if name != "instance"}


def _sample(index: VectorIndex) -> list[tuple[UUID, list[float]]]:
    """The memories that the index is tried with, and their vectors."""
    with connection.cursor() as cursor:
        cursor.execute(SAMPLE.format(indexed=indexed(index), most=TRIED_WITH))
        return list(cursor.fetchall())


def length_of(vectors: Sequence[Sequence[float]]) -> int:
    """How long the vectors were before they were padded with zeros."""
    used = max((place for vector in vectors for place, number in enumerate(vector, 1) if number), default=0)
    return next(length for length in LENGTHS if length >= used)


def _depth(scope: Scope, index: VectorIndex, sample: Sequence[tuple[UUID, Sequence[float]]], *, is_part: bool) -> int:
    """How many candidates the index must be asked for to find what a scan finds; 0 if it finds too little.

    An index over parts of the vectors must find nearly all, because one over whole vectors can still be built.
    """
    wanted = [_cosines(scope, memory, vector, index) for memory, vector in sample]
    shares: dict[int, float] = {}
    for depth in (depth for depth in DEPTHS if depth <= PART_DEPTH or not is_part):
        tried = index._replace(depth=depth)
        found = [_cosines(scope, memory, vector, tried) for memory, vector in sample]
        shares[depth] = mean(map(_share, found, wanted))
        if shares[depth] >= NEARLY_ALL:
            break
    best = max(shares.values())
    enough = (depth for depth, share in shares.items() if share >= best - NO_MORE)
    return next(enough) if best >= (NEARLY_ALL if is_part else AT_LEAST) else 0


def _cosines(scope: Scope, memory: UUID, vector: Sequence[float], index: VectorIndex) -> list[float]:
    """The cosines of the nearest other memories, as search would find them if the instance had this index."""
    instance = copy(scope.instance)
    for name, value in noted(index).items():
        setattr(instance, name, value)
    hits, _ = find(replace(scope, instance=instance), Query("x"), Filters(), "vector", vector, NEAREST + 1, 0)
    return [hit.found.similarity or 0 for hit in hits if hit.memory.id != memory][:NEAREST]


def _share(found: Sequence[float], wanted: Sequence[float]) -> float:
    """The share that is at least as near as the last wanted one: of equally near memories either is right."""
    return sum(cosine >= wanted[-1] - 1e-9 for cosine in found) / len(wanted) if wanted else 1.0


def _create_index(scope: Scope, index: VectorIndex) -> None:
    create = CREATE.format(name=_name_of(index), **index._asdict())
    size = BYTES_PER_LINKS + BYTES_PER_NUMBER * index.dimensions
    try:
        _create(scope.instance, create, ENOUGH_MEMORY, min(lengths(scope).all * size // 2**20 + 1, MOST_MB))
    except OperationalError:  # too little shared memory
        _create(scope.instance, create, ALONE)


def _create(instance: Instance, create: str, prepare: str, *parameters: int) -> None:
    """A build that fails or is interrupted leaves an invalid index behind, which is dropped."""
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
    """Drop indexes of deleted instances, those of earlier versions, and invalid ones left by a killed worker."""
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
    """The prefix of the names of its indexes."""
    return f"vectors_of_{instance.id.hex}_"


def _name_of(index: VectorIndex) -> str:
    return f"vectors_of_{index.instance.hex}_{index.generation}_{index.up_to.hex[-8:]}_{index.dimensions}"
