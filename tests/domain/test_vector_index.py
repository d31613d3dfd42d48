"""A huge instance gets a vector index of its own, built beside everything else, and loses it when it shrinks."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from instances.models import Instance
from memories import jobs, vector_index
from memories.backfill import embed_pending
from memories.deletion import delete_memory
from memories.filters import Filters
from memories.models import Memory
from memories.search import search
from tests.factories import make_instance, make_memory, scope_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def five_are_many(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(jobs, "WORTH_INDEXING", 5)
    yield
    for instance in Instance.objects.all():
        vector_index.drop_indexes(instance)


def filled(slug: str, number: int) -> Instance:
    instance = make_instance(slug, embedder="offline")
    for n in range(number):
        make_memory(instance, f"Tea number {n}")
    embed_pending(scope_of(instance))
    return instance


def build() -> None:
    jobs.fold_counts(timestamp=0)
    jobs.build_vector_indexes(timestamp=0)


def index_states(instance: Instance) -> list[bool]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indisvalid FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid WHERE starts_with(relname, %s)",
            [f"embedding_of_{instance.id.hex}"],
        )
        return [valid for (valid,) in cursor.fetchall()]


def test_only_large_instances_get_one() -> None:
    large, small = filled("large", 8), filled("small", 3)
    build()
    assert (index_states(large), index_states(small)) == ([True], [])
    large.refresh_from_db()
    assert large.indexed_generation == large.embedding_generation
    assert len(search(scope_of(large), "tea", Filters(), mode="vector").hits) == 8


def test_building_again_changes_nothing() -> None:
    large = filled("large", 8)
    build()
    build()
    assert index_states(large) == [True]


def test_an_interrupted_build_is_begun_anew() -> None:
    large = filled("large", 8)
    build()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass",
            [f"embedding_of_{large.id.hex}_{large.embedding_generation}"],
        )
    Instance.objects.filter(id=large.id).update(indexed_generation=0)
    build()
    assert index_states(large) == [True]


def test_an_instance_that_shrinks_loses_it() -> None:
    large = filled("large", 8)
    build()
    for memory in list(Memory.objects.filter(instance=large))[1:]:
        delete_memory(scope_of(large), memory.id)
    build()
    assert index_states(large) == []
    assert len(search(scope_of(large), "tea", Filters(), mode="vector").hits) == 1


def test_memory_is_borrowed_for_the_build_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "MB_PER_THOUSAND", 40_000)
    large = filled("large", 8)
    seen = []

    def look(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.lstrip().startswith("CREATE INDEX"):
            seen.append(memory_for_builds())
        return execute(sql, *rest)

    before = memory_for_builds()
    with connection.execute_wrapper(look):
        build()
    assert (seen, memory_for_builds()) == (["320MB"], before)
    assert before != "320MB"
    assert index_states(large) == [True]


def memory_for_builds() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW maintenance_work_mem")
        return str(cursor.fetchone()[0])
