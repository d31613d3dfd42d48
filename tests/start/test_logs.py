"""Log lines say what went wrong and where, and never what a memory says."""

import json
import logging

import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, connection

from memoryconsole.logs import formatter
from tests.factories import make_instance, make_memory

pytestmark = pytest.mark.django_db


def logged(error: Exception) -> str:
    """The exception of a log line, as Django logs that of a page and the worker that of a job."""
    told = (type(error), error, error.__traceback__)
    record = logging.LogRecord("django.request", logging.ERROR, __file__, 1, "Internal Server Error", (), told)
    return str(json.loads(formatter().format(record))["exception"])


def raised_by(statement: str) -> DatabaseError:
    with pytest.raises(DatabaseError) as caught, connection.cursor() as cursor:
        cursor.execute(statement)
    return caught.value


def test_a_row_that_the_database_refuses_is_not_quoted() -> None:
    make_memory(make_instance(), "Alice is allergic to nuts")
    error = raised_by("UPDATE memories_memory SET importance = 99")
    assert isinstance(error, IntegrityError)
    assert "allergic" in str(error)

    text = logged(error)
    assert "allergic" not in text
    assert text.startswith("IntegrityError\n")
    assert "CheckViolation" in text
    assert "test_logs.py" in text


def test_what_is_wrong_with_the_machine_is_told() -> None:
    error = raised_by("DO $$ BEGIN RAISE 'No space left on device' USING ERRCODE = 'disk_full'; END $$")
    assert isinstance(error, OperationalError)
    assert logged(error).startswith("OperationalError: No space left on device")
