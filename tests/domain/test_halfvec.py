"""Vectors arrive in PostgreSQL as they were sent."""

from array import array
from random import Random

import pytest
from django.db import connection, transaction

from memories.embedding.backfill_sql import VECTOR_TYPE
from memoryconsole.connections import without_waiting_for_the_disk
from memoryconsole.postgres.halfvec import HalfVector, Vectors

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("number", [1, 3, 300])
def test_many_vectors_at_once(number: int) -> None:
    random = Random(number)
    sent = [array("f", [random.gauss(0, 1) for _ in range(1536)]) for _ in range(number)]
    with connection.cursor() as cursor:
        cursor.execute(VECTOR_TYPE)
        vectors = Vectors.of(sent, cursor.fetchone()[0])
        cursor.execute("SELECT each::real[], each::halfvec FROM unnest(%s::vector[]) AS each", [vectors])
        rows = cursor.fetchall()
        assert [array("f", row[0]) for row in rows] == sent
        # PostgreSQL's way from 32 to 16 bits is Python's.
        cursor.execute("SELECT %s::halfvec = %s::halfvec", [rows[-1][1], HalfVector.of(sent[-1])])
        assert cursor.fetchone() == (True,)


@pytest.mark.django_db(transaction=True)
def test_only_what_can_be_made_again_does_not_wait_for_the_disk() -> None:
    def setting() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SHOW synchronous_commit")
            return str(cursor.fetchone()[0])

    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = on")
    try:
        with without_waiting_for_the_disk():
            assert setting() == "off"
            assert connection.in_atomic_block
        assert setting() == "on"
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET synchronous_commit")


@pytest.mark.django_db(transaction=True)
def test_a_transaction_around_it_is_not_made_less_safe() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = on")
        with without_waiting_for_the_disk():
            pass
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on",)
