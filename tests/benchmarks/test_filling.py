"""The rows that benchmarks write by SQL of their own: a column that the models have got since would stop them."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from instances.models import Instance
from memories.models import Chunk, Embedding, Memory
from tests.factories import make_instance

pytestmark = pytest.mark.django_db

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def bot() -> Instance:
    return make_instance("bench")


def parts(monkeypatch: pytest.MonkeyPatch, name: str, *wanted: str) -> list[Any]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module = import_module(name)
    monkeypatch.delitem(sys.modules, name)
    return [getattr(module, each) for each in wanted]


def test_listing(monkeypatch: pytest.MonkeyPatch, bot: Instance) -> None:
    (fill,) = parts(monkeypatch, "listing", "FILL")
    with connection.cursor() as cursor:
        cursor.execute(fill, {"instance": bot.id, "first": 1, "last": 50})
    assert Memory.objects.filter(instance=bot).count() == 50


def test_search(monkeypatch: pytest.MonkeyPatch, bot: Instance) -> None:
    with connection.cursor() as cursor:
        for statement in parts(monkeypatch, "search", "WORD", "MEMORIES", "CHUNKS"):
            cursor.execute(statement, {"instance": bot.id, "first": 1, "size": 50} if "%(" in statement else None)
    assert Chunk.objects.filter(instance=bot).count() == 50


@pytest.mark.django_db(transaction=True)
def test_search_without_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    create, fill = parts(monkeypatch, "search", "WORD", "fill")
    with connection.cursor() as cursor:
        cursor.execute(create)
    try:
        scope = fill(50, has_vectors=False)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION bench_word")
    assert Chunk.objects.filter(instance=scope.instance).count() == 50
    assert not Embedding.objects.exists()


def test_stores_are_filled_with_the_words_that_questions_have(monkeypatch: pytest.MonkeyPatch) -> None:
    (create,) = parts(monkeypatch, "search", "WORD")
    (word,) = parts(monkeypatch, "peer.words", "word")
    with connection.cursor() as cursor:
        cursor.execute(create)
        cursor.execute("SELECT bench_word(n) FROM generate_series(0, 99) AS n")
        assert [made for (made,) in cursor.fetchall()] == [word(n) for n in range(100)]
