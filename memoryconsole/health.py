"""The health checks that `/readyz` and `manage.py doctor` share."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import psycopg
from django.core.management.base import CommandError
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

WORKER_SEEN_WITHIN = 30

Level = Literal["ok", "info", "warning", "broken"]


@dataclass(frozen=True)
class Finding:
    check: str
    level: Level
    message: str
    advice: str = ""


def readiness() -> list[Finding]:
    """What requests need. Without a database the other checks are left out."""
    first = database()
    if first.level == "broken":
        return [first]
    return [first, migrations(), worker()]


def connection_problem() -> str | None:
    """Why a new connection fails, or None. The pool would only say that it timed out."""
    try:
        psycopg.connect(**connection.get_connection_params()).close()
    except CommandError as error:
        # Of the embedded server: its own last words come in the lines after the first.
        return str(error)
    except psycopg.Error as error:
        return _first_line(error)
    return None


def database() -> Finding:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (DatabaseError, CommandError) as error:
        return unreachable(_first_line(error))
    return Finding("database", "ok", "The database answers.")


def unreachable(reason: str) -> Finding:
    return Finding("database", "broken", "The database cannot be reached.", reason)


def text() -> Finding:
    """Whether encoding and locale suit all languages; both are fixed when a database is created."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_encoding')")
        encoding = cursor.fetchone()[0]
        if encoding != "UTF8":
            advice = "Make another one with ENCODING 'UTF8' TEMPLATE template0, and name that in DATABASE_URL."
            return Finding("text", "broken", f"The database stores text as {encoding}, not as UTF8.", advice)
        cursor.execute("SELECT lower('Ж') = 'ж'")
        if not cursor.fetchone()[0]:
            return Finding(
                "text",
                "warning",
                "The database's locale knows no capitals beyond ASCII: москва does not find МОСКВА.",
                "Dump it, and restore it into one made with LOCALE 'C.UTF-8' TEMPLATE template0.",
            )
    return Finding("text", "ok", "UTF8, with the capitals of all scripts")


def migrations() -> Finding:
    applied = MigrationRecorder(connection).applied_migrations().keys()
    if newer := _newer_than_ours(applied):
        return Finding(
            "migrations",
            "broken",
            f"A newer version of the console has changed the database: {'.'.join(newer)} is not known here.",
            "Run that version again, or restore a backup that is older than it.",
        )
    missing = [
        key
        for key, replaces in _migrations_on_disk().items()
        if key not in applied and not (replaces and all(other in applied for other in replaces))
    ]
    if missing:
        return Finding(
            "migrations",
            "broken",
            f"{len(missing)} migrations are not applied, among them {'.'.join(min(missing))}.",
            "Run `manage.py migrate`; `manage.py up` does it by itself.",
        )
    return Finding("migrations", "ok", "All migrations are applied.")


def _newer_than_ours(applied: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
    """The first migration that comes after all we know of its app."""
    last = dict(sorted(_migrations_on_disk()))
    return min(((app, name) for app, name in applied if app in last and name > last[app]), default=None)


def worker() -> Finding:
    advice = "Start `manage.py worker`; `manage.py up` does it by itself. Until then nothing is embedded or extracted."
    age = _seconds_since_heartbeat()
    if age is None:
        return Finding("worker", "warning", "No worker is running.", advice)
    if age > WORKER_SEEN_WITHIN:
        return Finding("worker", "warning", f"The worker was last seen {age:.0f} s ago.", advice)
    return Finding("worker", "ok", "The worker is running.")


def _seconds_since_heartbeat() -> float | None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT extract(epoch FROM now() - max(last_heartbeat))::float FROM procrastinate_workers")
            row = cursor.fetchone()
    except DatabaseError:
        return None
    return row[0] if row else None


@functools.cache
def _migrations_on_disk() -> dict[tuple[str, str], list[tuple[str, str]]]:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    return {key: list(migration.replaces) for key, migration in loader.disk_migrations.items()}


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
