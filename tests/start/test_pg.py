"""`manage.py pg` runs PostgreSQL's programs on the console's database."""

import re
import shlex

import pytest
from django.core.management import call_command
from django.db import connection

from tests.environment import ROOT
from tests.factories import make_instance, make_memory
from tests.start.console import manage

pytestmark = pytest.mark.django_db


def test_psql_talks_to_the_same_database(capfd):
    call_command("pg", "psql", "-qAtc", "SELECT current_database(), current_user")
    assert capfd.readouterr().out.strip() == f"{connection.settings_dict['NAME']}|postgres"


def test_the_options_of_database_url_reach_the_programs(monkeypatch, capfd):
    given = {"sslrootcert": "/etc/ssl/our-ca.pem", "options": "-c search_path=elsewhere", "application_name": "nightly"}
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", connection.settings_dict["OPTIONS"] | given)
    call_command(
        "pg",
        "psql",
        "-qAtc",
        "SHOW search_path; SHOW application_name",
        "-c",
        r"\getenv ca PGSSLROOTCERT",
        "-c",
        r"\echo :ca",
    )
    assert capfd.readouterr().out.splitlines() == ["elsewhere", "nightly", "/etc/ssl/our-ca.pem"]


def test_a_dump_is_readable(tmp_path, capfd):
    dump = tmp_path / "console.dump"
    call_command("pg", "pg_dump", "-Fc", "--table=django_session", "-f", str(dump))
    call_command("pg", "pg_restore", "--list", str(dump))
    assert "TABLE public django_session" in capfd.readouterr().out


@pytest.mark.django_db(transaction=True)
def test_a_backup_can_be_restored(tmp_path, capfd):
    """Into a database that knows nothing: words are cut anew, without a search path to find the functions by."""
    make_memory(make_instance("support-bot"), "Invoice INV-20311 was paid in 東京")
    dump = tmp_path / "console.dump"
    call_command("pg", "pg_dump", "-Fc", "-f", str(dump))
    call_command("pg", "psql", "-qc", "CREATE DATABASE restored")
    try:
        call_command("pg", "pg_restore", "--exit-on-error", "-d", "restored", str(dump))
        call_command("pg", "psql", "-d", "restored", "-qAtc", "SELECT words @@ '20311 & 東京' FROM memories_chunk")
    finally:
        call_command("pg", "psql", "-qc", "DROP DATABASE restored")
    assert capfd.readouterr().out.strip() == "t"


def documented(program: str) -> list[list[str]]:
    """The arguments of `manage.py pg` in the docs."""
    text = (ROOT / "docs/running.md").read_text()
    return [shlex.split(line) for line in re.findall(rf"manage\.py (pg {program} .+)", text)]


def test_a_backup_is_restored_after_an_upgrade_as_the_docs_say(data_dir):
    """A newer version has made what an older dump does not know."""

    def run(*arguments: str) -> str:
        done = manage(*arguments, data_dir=data_dir, LOG_LEVEL="ERROR")
        assert done.returncode == 0, done.stderr
        return done.stdout

    dump = str(data_dir / "console.dump")
    (backup,), (restore, _) = documented("pg_dump"), documented("pg_restore")
    run("migrate", "-v", "0")
    run("createinstance", "support-bot")
    run(*backup[:-1], dump)
    run("pg", "psql", "-qc", "CREATE TABLE later (instance uuid REFERENCES instances_instance)")
    run(*restore[:-1], dump)
    assert run("pg", "psql", "-qAtc", "SELECT slug, to_regclass('later') FROM instances_instance") == "support-bot|\n"


def test_the_programs_exit_code_is_passed_on(capfd):
    with pytest.raises(SystemExit, match="1"):
        call_command("pg", "psql", "-c", "SELECT 1 / 0")
    assert "division by zero" in capfd.readouterr().err
