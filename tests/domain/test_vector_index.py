"""A large instance gets a vector index of its own, built beside everything else, if it finds what a scan finds."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DataError, connection
from django.db.backends.utils import CursorWrapper
from hypothesis import given
from hypothesis import strategies as st

from instances.models import Instance
from instances.store import delete_instance
from memories import jobs
from memories.deletion import delete_memory
from memories.embedding.backfill import embed_pending
from memories.filters import Filters
from memories.models import Chunk, Memory
from memories.search import passing, statement, vector_index, vectors_sql
from memories.search.hybrid import search
from memories.search.similar import similar
from tests.domain.conftest import searched_as
from tests.factories import make_instance, make_memory, scope_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def five_are_many(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(jobs, "WORTH_INDEXING", 5)
    searched_as("large", monkeypatch)
    yield
    for instance in Instance.objects.all():
        vector_index.give_up_index(scope_of(instance))


def filled(slug: str, number: int) -> Instance:
    instance = make_instance(slug, embedder="offline")
    add(instance, range(number))
    return instance


def add(instance: Instance, numbers: range) -> None:
    for n in numbers:
        make_memory(instance, f"Tea number {n}")
    embed_pending(scope_of(instance))


def build() -> None:
    jobs.fold_counts(timestamp=0)
    jobs.build_vector_indexes(timestamp=0)


def index_states(instance: Instance) -> dict[str, bool]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, indisvalid FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid"
            " WHERE starts_with(relname, %s)",
            [f"vectors_of_{instance.id.hex}"],
        )
        return dict(cursor.fetchall())


def found(instance: Instance, **filters: Any) -> set[str]:
    instance.refresh_from_db()
    hits = search(scope_of(instance), "tea", Filters(**filters), mode="vector", limit=100).hits
    return {hit.memory.content for hit in hits}


def plans(instance: Instance) -> str:
    """How PostgreSQL goes about the searches of the instance."""
    seen: list[str] = []

    def explained(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        if "WITH point" in sql:
            cursor: CursorWrapper = context["cursor"]
            # So few it may just as well put in order itself, as soon as it knows that they are few.
            cursor.cursor.execute("SET LOCAL enable_sort = off")
            cursor.cursor.execute(f"EXPLAIN {sql}", parameters)
            seen.extend(row for (row,) in cursor.cursor.fetchall())
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(explained):
        found(instance)
        found(instance, category="fact")
    return "\n".join(seen)


def test_only_large_instances_get_one() -> None:
    large, small = filled("large", 8), filled("small", 3)
    build()
    assert list(index_states(large).values()) == [True]
    assert index_states(small) == {}
    large.refresh_from_db()
    assert large.indexed_generation == large.embedding_generation
    assert len(found(large)) == 8


def test_search_uses_it_with_and_without_filters() -> None:
    large = filled("large", 8)
    Memory.objects.filter(instance=large).update(category="fact")
    assert "vectors_of" not in plans(large)
    build()
    used = plans(large)
    assert used.count("Index Scan using vectors_of") == 2
    assert used.count("Index Only Scan using embedding_sample") == 2, "which tells whether a search got lost"


def test_it_holds_as_much_of_a_vector_as_the_model_makes() -> None:
    large = filled("large", 8)
    build()
    assert indexed_part(large) == 384


def test_of_long_vectors_it_holds_a_part_where_that_is_enough_to_find_what_is_near() -> None:
    large = filled("large", 8)
    change_vectors("vector + array_fill(0.01, ARRAY[1536])::halfvec")
    build()
    assert indexed_part(large) == 512
    assert len(found(large)) == 8
    assert "Index Scan using vectors_of" in plans(large)


def test_it_holds_all_of_vectors_whose_first_part_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "DEPTHS", (20,))
    monkeypatch.setattr(vector_index, "NEAREST", 3)
    monkeypatch.setattr(vector_index, "AT_LEAST", 0.9)
    large = filled("large", 40)
    alike = "array_fill(0.01, ARRAY[600])::halfvec(600)"
    change_vectors(f"{alike} || subvector(vector, 1, 384) || array_fill(0.01, ARRAY[552])::halfvec(552)")
    build()
    assert indexed_part(large) == 1536
    assert "Index Scan using vectors_of" in plans(large)


def change_vectors(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE memories_embedding SET vector = l2_normalize(({sql})::halfvec(1536))")


def indexed_part(instance: Instance) -> int:
    """How many numbers of a vector the only index of the instance holds."""
    instance.refresh_from_db()
    (name,) = index_states(instance)
    assert f"(subvector(vector, 1, {instance.indexed_dimensions}))::halfvec" in definition(name)
    return instance.indexed_dimensions


def definition(index: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_indexdef(%s::regclass)", [index])
        return str(cursor.fetchone()[0])


@given(used=st.integers(1, 1536))
def test_of_the_usual_lengths_it_takes_the_least_that_loses_nothing(used: int) -> None:
    length = vector_index.length_of([[0.0] * 1536, [0.0] * (used - 1) + [0.5] + [0.0] * (1536 - used)])
    assert length in vector_index.LENGTHS
    assert length >= used
    assert all(shorter < used for shorter in vector_index.LENGTHS if shorter < length)


def test_what_comes_later_is_found_beside_it() -> None:
    large = filled("large", 8)
    build()
    index = index_states(large)
    add(large, range(8, 10))
    memory = Memory.objects.get(instance=large, content="Tea number 0")
    assert found(large) == {f"Tea number {n}" for n in range(10)}
    assert {near.content for near, _ in similar(scope_of(large), memory, 20)} == found(large) - {memory.content}
    assert found(large, min_importance=1) == found(large)
    assert index_states(large) == index, "and nobody has built anything"


def test_a_search_that_gets_lost_in_it_is_answered_by_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    large = filled("large", 8)
    far = make_memory(large, "Quarterly revenue rose in Oslo")
    embed_pending(scope_of(large))
    build()
    # What the index is made to find, and everything in the sample: one in 64 of nine would be nobody.
    monkeypatch.setattr(vectors_sql, "INDEXED", f"{vectors_sql.INDEXED} AND e.memory_id = '{far.id}'")
    monkeypatch.setattr(vectors_sql, "LOST", vectors_sql.LOST.replace(vectors_sql.SAMPLED, "true"))
    statement.statement.cache_clear()  # the trial has asked already
    everything = {f"Tea number {n}" for n in range(8)} | {far.content}
    assert found(large) == found(large, min_importance=1) == everything
    tea = Memory.objects.get(instance=large, content="Tea number 0")
    assert {near.content for near, _ in similar(scope_of(large), tea, 20)} == everything - {tea.content}
    monkeypatch.setattr(vectors_sql, "LOST", "false")
    statement.statement.cache_clear()
    assert found(large) == {far.content}, "as it would be otherwise"


def test_adding_a_memory_adds_nothing_to_it() -> None:
    large = filled("large", 8)
    build()
    (name,) = index_states(large)
    add(large, range(8, 10))
    with connection.cursor() as cursor:
        cursor.execute(f"REINDEX INDEX {name}")
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = %s", [name])
        assert cursor.fetchone() == (8,)


def test_when_a_fifth_is_new_it_is_built_anew() -> None:
    large = filled("large", 10)
    build()
    first = index_states(large)
    add(large, range(10, 12))
    build()
    assert index_states(large) == first
    add(large, range(12, 14))
    build()
    assert list(index_states(large).values()) == [True]
    assert index_states(large) != first
    assert len(found(large)) == 14


def test_one_that_finds_less_than_a_scan_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "DEPTHS", (3,))
    large = filled("large", 12)
    build()
    large.refresh_from_db()
    assert (index_states(large), large.indexed_depth) == ({}, 0)
    assert len(found(large)) == 12
    tried = large.indexed_up_to
    build()
    large.refresh_from_db()
    assert large.indexed_up_to == tried, "not tried again before there is more"


def test_it_is_asked_for_as_few_as_find_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "DEPTHS", (2, 4, 12, 400))
    large = filled("large", 12)
    build()
    large.refresh_from_db()
    assert large.indexed_depth == 12


def test_the_more_filters_leave_the_more_it_is_asked_for() -> None:
    """What they reject makes the search read more of the index for each that passes."""
    large = filled("large", 20)
    build()
    asked_for = []
    for number in (3, 4, 20):
        Memory.objects.filter(instance=large).update(category="general")
        ids = Memory.objects.filter(instance=large).values("id")[:number]
        Memory.objects.filter(instance=large, id__in=ids).update(category="fact")
        asked_for.append(candidates(large))
    assert asked_for == [60, 100, 100]
    assert min(asked_for) > statement.ENOUGH_INDEXED, "or everything would be scanned as well, every time"


def candidates(instance: Instance) -> int:
    """How many the index is asked for, in a search under a filter."""
    seen: list[str] = []

    def noted(execute: Any, sql: str, *rest: Any) -> Any:
        seen.extend(re.findall(r"found AS MATERIALIZED \(.*?LIMIT (\d+)", sql, re.DOTALL))
        return execute(sql, *rest)

    passing._counts.clear()
    with connection.execute_wrapper(noted):
        found(instance, category="fact")
    return int(seen[0])


@pytest.mark.parametrize(("at_least", "depth"), [(0.5, 8), (0.9, 0)])
def test_if_it_never_finds_nearly_all_it_is_asked_for_as_many_as_find_most(
    at_least: float, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_index, "DEPTHS", (4, 8))
    monkeypatch.setattr(vector_index, "AT_LEAST", at_least)
    large = filled("large", 12)
    build()
    large.refresh_from_db()
    assert (large.indexed_depth, len(index_states(large))) == (depth, bool(depth))


def test_building_again_changes_nothing() -> None:
    large = filled("large", 8)
    build()
    first = index_states(large)
    build()
    assert index_states(large) == first


def test_an_interrupted_build_is_begun_anew() -> None:
    large = filled("large", 8)
    build()
    (name,) = index_states(large)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [name])
    Instance.objects.filter(id=large.id).update(indexed_generation=0)
    build()
    assert index_states(large) == {name: True}


def test_a_build_that_fails_leaves_nothing_behind_nor_does_an_interrupted_one_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = filled("large", 8)
    build()
    (name,) = index_states(large)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [name])
    Instance.objects.filter(id=large.id).update(indexed_generation=0)
    add(large, range(8, 10))
    monkeypatch.setattr(vector_index, "CREATE", f"{vector_index.CREATE} AND 1 / (generation - generation) = 1")
    with pytest.raises(DataError):
        build()
    assert index_states(large) == {}


@pytest.mark.parametrize("dimensions", [0, 384])
def test_what_a_worker_of_an_earlier_version_builds_after_the_migrations_is_replaced(dimensions: int) -> None:
    """It notes neither the dimensions, which it does not know, nor an index that a search could use."""
    large = filled("large", 8)
    other = f"embedding_of_{large.id.hex}_1_01234567"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE INDEX {other} ON memories_embedding USING hnsw (bits bit_hamming_ops)")
    last = Chunk.objects.filter(instance=large).order_by("-id").values_list("id", flat=True)[0]
    noted = {"indexed_generation": 1, "indexed_up_to": last, "indexed_depth": 250, "indexed_dimensions": dimensions}
    Instance.objects.filter(id=large.id).update(**noted)
    assert len(found(large)) == 8
    build()
    assert list(index_states(large).values()) == [True]
    assert "Index Scan using vectors_of" in plans(large)
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [other])
        assert cursor.fetchone() == (None,)


def test_an_instance_that_shrinks_loses_it() -> None:
    large = filled("large", 8)
    build()
    for memory in list(Memory.objects.filter(instance=large))[1:]:
        delete_memory(scope_of(large), memory.id)
    build()
    assert index_states(large) == {}
    assert len(found(large)) == 1


def test_an_instance_that_shrinks_before_an_interrupted_build_is_begun_anew_keeps_nothing_of_it() -> None:
    large = filled("large", 8)
    build()
    (name,) = index_states(large)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [name])
    Instance.objects.filter(id=large.id).update(indexed_generation=0, indexed_up_to=None, indexed_depth=0)
    for memory in list(Memory.objects.filter(instance=large))[1:]:
        delete_memory(scope_of(large), memory.id)
    build()
    assert index_states(large) == {}


def test_an_instance_that_is_deleted_leaves_none() -> None:
    large, other = filled("large", 8), filled("other", 8)
    build()
    delete_instance(scope_of(large))
    build()
    assert index_states(large) == {}
    assert list(index_states(other).values()) == [True]


@pytest.mark.parametrize("unlucky", [0, 1])
def test_one_that_cannot_be_built_keeps_nobody_else_from_theirs(monkeypatch: pytest.MonkeyPatch, unlucky: int) -> None:
    instances = [filled("large", 8), filled("other", 8)]
    fails = f"1 / (CASE instance_id WHEN '{instances[unlucky].id}' THEN 0 ELSE 1 END) = 1"
    monkeypatch.setattr(vector_index, "CREATE", f"{vector_index.CREATE} AND {fails}")
    with pytest.raises(DataError):
        build()
    assert index_states(instances[unlucky]) == {}
    assert list(index_states(instances[1 - unlucky]).values()) == [True]


def test_memory_is_borrowed_for_the_build_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "BYTES_PER_LINKS", 40 * 2**20)
    large = filled("large", 8)
    seen = []

    def look(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.lstrip().startswith("CREATE INDEX"):
            seen.append(memory_for_builds())
        return execute(sql, *rest)

    before = memory_for_builds()
    with connection.execute_wrapper(look):
        build()
    assert (seen, memory_for_builds()) == (["321MB"], before)
    assert before != "321MB"
    assert list(index_states(large).values()) == [True]


def memory_for_builds() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW maintenance_work_mem")
        return str(cursor.fetchone()[0])
