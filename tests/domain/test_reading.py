"""Queries that are composed once answer as the ORM does, for every row and every caller."""

from uuid import UUID

import pytest
from django.db import connection
from django.db.models import QuerySet

from instances.models import Instance
from memories.models import Memory
from memoryconsole.reading import Composed, columns_of, row_of
from tests.factories import make_instance, make_memory

pytestmark = pytest.mark.django_db


def test_values_are_put_in_place() -> None:
    def named(slug: str, id: UUID) -> QuerySet[Instance]:
        return Instance.objects.filter(is_demo=False, slug=slug).exclude(id=id)

    query = Composed(named, str, UUID)
    one, two = make_instance("one", openaiKey="sk-secret-key-1234"), make_instance("two")
    assert query.first("one", two.id) == one
    assert query.first("two", one.id) == two
    assert query.first("two", two.id) is None
    assert query.first("stand-in", two.id) is None


def test_a_row_is_what_the_orm_would_have_read() -> None:
    memory = make_memory(make_instance(), "Tea", tags=["a"], evidence={"domains": ["x.org"]}, pinned=True)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns_of(Memory, 'm')} FROM memories_memory m")
        (row,) = cursor.fetchall()
    expected = Memory.objects.get(id=memory.id)
    assert vars(row_of(Memory, row)) | {"_state": None} == vars(expected) | {"_state": None}


def test_an_encrypted_column_is_read_as_it_was_written() -> None:
    make_instance("one", openaiKey="sk-secret-key-1234")
    found = Composed(lambda slug: Instance.objects.filter(slug=slug), str).first("one")
    assert found is not None
    assert found.openai_key == "sk-secret-key-1234"
