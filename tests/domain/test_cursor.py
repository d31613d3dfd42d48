"""A statement through our own cursor goes wrong as it does through Django's."""

import pytest
from django.db import DataError, ProgrammingError, connection, transaction
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("sql", "error"), [("SELECT 1 / 0", DataError), ("SELECT nothing", ProgrammingError)])
def test_the_drivers_errors_become_djangos(sql: str, error: type[Exception]) -> None:
    with pytest.raises(error) as raised, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)
    assert raised.value.__cause__ is not None


@pytest.mark.parametrize("fetch", ["fetchone", "fetchall", "fetchmany"])
def test_there_is_nothing_to_fetch(fetch: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL work_mem = '8MB'")
        with pytest.raises(ProgrammingError):
            getattr(cursor, fetch)()


def test_a_broken_transaction_is_not_gone_on_with() -> None:
    with transaction.atomic():
        transaction.set_rollback(True)
        with connection.cursor() as cursor, pytest.raises(TransactionManagementError):
            cursor.execute("SELECT 1")


def test_statements_can_be_counted_and_wrapped() -> None:
    seen = []

    def note(execute, sql, params, many, context):
        seen.append(sql)
        return execute(sql, params, many, context)

    with CaptureQueriesContext(connection) as captured, connection.execute_wrapper(note), connection.cursor() as cursor:
        cursor.execute("SELECT %s::int", [3])
        assert cursor.fetchone() == (3,)
    assert seen == ["SELECT %s::int"]
    assert len(captured) == 1
