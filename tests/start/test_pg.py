"""`manage.py pg` runs PostgreSQL's programs on the console's database."""

import pytest
from django.core.management import call_command
from django.db import connection

pytestmark = pytest.mark.django_db


def test_psql_talks_to_the_same_database(capfd):
    call_command("pg", "psql", "-qAtc", "SELECT current_database(), current_user")
    assert capfd.readouterr().out.strip() == f"{connection.settings_dict['NAME']}|postgres"


def test_a_dump_is_readable(tmp_path, capfd):
    dump = tmp_path / "console.dump"
    call_command("pg", "pg_dump", "-Fc", "--table=django_session", "-f", str(dump))
    call_command("pg", "pg_restore", "--list", str(dump))
    assert "TABLE public django_session" in capfd.readouterr().out


def test_the_programs_exit_code_is_passed_on(capfd):
    with pytest.raises(SystemExit, match="1"):
        call_command("pg", "psql", "-c", "SELECT 1 / 0")
    assert "division by zero" in capfd.readouterr().err
