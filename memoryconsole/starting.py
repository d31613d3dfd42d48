"""What `manage.py up` does before it becomes the supervisor: prepare the database."""

import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import cast

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, connections
from django.db.migrations.exceptions import MigrationSchemaMissing

from memoryconsole import health
from memoryconsole.postgres.base import DatabaseWrapper
from memoryconsole.processes import module_command
from memoryconsole.supervisor import ENDING

# SQLSTATE codes of PostgreSQL: not allowed; an extension that is not supported, or whose files are missing.
REFUSALS = {"42501", "0A000", "58P01"}

Say = Callable[[str], None]


def up(host: str, port: int, *, demo: bool, say: Say) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _exit)
    try:
        prepare(demo=demo, say=say)
    except KeyboardInterrupt:
        say("\nStopped.")
    else:
        _become_supervisor(host, port)


def prepare(*, demo: bool, say: Say) -> None:
    """Bring the schema up to date and do the first start's work."""
    from memoryconsole import first_start

    say("Preparing the database …")
    _check_database()
    _migrate()
    schema = health.migrations()
    if schema.level != "ok":
        say(f"{schema.message} {schema.advice}")
    password = first_start.prepare(demo=demo)
    if password:
        # At once, because it cannot be shown again if something fails later.
        say(f"Sign in as {settings.ADMIN_USERNAME} with the password {password} (shown only this once).")
    database = cast(DatabaseWrapper, connections["default"])
    database.close()
    database.close_pool()


def _check_database() -> None:
    if problem := health.connection_problem():
        raise CommandError(f"The database cannot be reached: {problem}")
    text = health.text()
    if text.level == "broken":
        raise CommandError(f"{text.message} {text.advice}")


def _migrate() -> None:
    try:
        call_command("migrate", verbosity=0, interactive=False)
    except DatabaseError as error:
        # Django raises this one in place of the first error.
        first = error.__context__ if isinstance(error, MigrationSchemaMissing) else error
        if first is None or getattr(first.__cause__, "sqlstate", None) not in REFUSALS:
            raise
        raise CommandError(
            f"The migrations cannot be applied: {str(first).splitlines()[0]}. "
            "docs/running.md says what a PostgreSQL of your own must have and allow."
        ) from None


def _become_supervisor(host: str, port: int) -> None:
    """Replace the program of this process, whose exit handlers do not run. It keeps its id and its output."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    command = module_command("memoryconsole.supervisor", host, str(port))
    path = [str(settings.BASE_DIR), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.execve(command[0], command, {**os.environ, "PYTHONPATH": os.pathsep.join(path)})  # noqa: S606


def _exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
