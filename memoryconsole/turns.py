"""Advisory locks, for what only one transaction or process may do at a time."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import connection

LOOK_SECONDS = 0.2


def wait_for_turn(name: str) -> None:
    """Wait for the lock `name`, and hold it until the current transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [_full(name)])


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Wait for the lock `name`, and hold it over any number of transactions.

    The connection is its own, so the lock ends with this process. It asks again and again, because CREATE INDEX
    CONCURRENTLY would wait for a statement that waits for the lock.
    """
    with (
        connection.wrap_database_errors,
        psycopg.connect(**connection.get_connection_params(), autocommit=True) as lock,
    ):
        question = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
        while lock.execute(question, [_full(name)]).fetchone() != (True,):
            time.sleep(LOOK_SECONDS)
        yield


def _full(name: str) -> str:
    return f"memory console: {name}"
