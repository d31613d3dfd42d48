"""What a command says when the database is not there or not ready."""

import pytest
from django.db import OperationalError, ProgrammingError, connection

from tests.commands.conftest import Shell
from tests.factories import make_instance


def test_tables_that_are_missing(shell: Shell):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE instances_instance RENAME TO elsewhere")
    ran = shell("memory", "list", "--instance", "support-bot")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "The database is not set up for this version. Run: manage.py doctor\n"


def test_a_server_that_does_not_answer(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(connection, "cursor", _refuse)
        ran = shell("memory", "list", "--instance", "support-bot")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "The database does not answer (connection refused). Run: manage.py doctor\n"


def test_any_other_mistake_in_sql_is_ours_and_stays_loud(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    make_instance("support-bot")
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(connection, "cursor", _mistake)
        with pytest.raises(ProgrammingError):
            shell("memory", "list", "--instance", "support-bot")


def _refuse() -> None:
    raise OperationalError("connection refused\nIs the server running?")


def _mistake() -> None:
    raise ProgrammingError("syntax error")
