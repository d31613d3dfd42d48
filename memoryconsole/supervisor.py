"""What `manage.py up` does: prepare the database, then keep servers and worker running."""

import http.client
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import cast

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, connections
from django.db.migrations.exceptions import MigrationSchemaMissing

from memoryconsole import embedded, health
from memoryconsole.postgres.base import DatabaseWrapper
from memoryconsole.processes import Child, ChildOnDemand, listen_locally

TICK_SECONDS = 0.1
# Looking at the database's process is cheap, so it is done more often than connecting to it.
GLANCE_SECONDS = 0.3
DATABASE_CHECK_SECONDS = 5.0
STOP_SECONDS = 12.0
# A web server that crashes so often before it has ever answered is given up.
HOPELESS_CRASHES = 4
# SQLSTATE codes of PostgreSQL: not allowed; an extension that is not supported, or whose files are missing.
REFUSALS = {"42501", "0A000", "58P01"}

Say = Callable[[str], None]


def up(host: str, port: int, *, demo: bool, say: Say) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _exit)
    try:
        prepare(demo=demo, say=say)
        Supervisor(host, port, say).run()
    except KeyboardInterrupt:
        say("\nStopped.")


def prepare(*, demo: bool, say: Say) -> None:
    """Bring the schema up to date and do the first start's work."""
    from memoryconsole import first_start

    say("Preparing the database …")
    _check_database()
    _migrate()
    password = first_start.prepare(demo=demo)
    if password:
        # At once, because it cannot be shown again if something fails later.
        say(f"Sign in as {settings.ADMIN_USERNAME} with the password {password} (shown only this once).")
    # From here on this process only watches; the children have pools of their own.
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


class Supervisor:
    def __init__(self, host: str, port: int, say: Say) -> None:
        self.host = host
        self.port = port
        self.say = say
        self.answered = False
        self.stopping = False
        manage = [sys.executable, str(settings.BASE_DIR / "manage.py")]
        parent = ["--parent", str(os.getpid())]
        listening = _mcp_socket()
        environment = {"MCP_PORT": str(listening.getsockname()[1])}
        self.web = Child("web server", [*manage, "web", "--host", host, "--port", str(port), *parent], environment)
        self.mcp = ChildOnDemand("MCP server", [*manage, "mcpserver", *parent], listening)
        self.worker = Child("worker", [*manage, "worker", *parent])
        self._next_glance = self._next_database_check = 0.0

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._ask_to_stop)
        try:
            while not self.stopping:
                self._tick()
                time.sleep(TICK_SECONDS)
            self.say("Stopping …")
        finally:
            self.web.stop(STOP_SECONDS)
            self.mcp.stop(STOP_SECONDS)
            self.worker.stop(STOP_SECONDS)
        if settings.EMBEDDED_POSTGRES:
            embedded.leave()
        self.say("Stopped.")

    def _tick(self) -> None:
        self._watch_database()
        for child in (self.web, self.mcp, self.worker):
            if news := child.tend():
                self.say(news)
        if not self.answered:
            self._greet()

    def _watch_database(self) -> None:
        now = time.monotonic()
        if not settings.EMBEDDED_POSTGRES or now < self._next_glance:
            return
        self._next_glance = now + GLANCE_SECONDS
        if now < self._next_database_check and not embedded.has_died():
            return
        self._next_database_check = now + DATABASE_CHECK_SECONDS
        try:
            if embedded.revive():
                self.say("PostgreSQL was gone; it runs again.")
        except embedded.EmbeddedPostgresError as error:
            self.say(str(error))
            self._next_glance = now + DATABASE_CHECK_SECONDS

    def _greet(self) -> None:
        if self.web.crashes >= HOPELESS_CRASHES:
            raise CommandError("The web server does not start; what it said is above.")
        self.answered = answers(self.host, self.port)
        if self.answered:
            self.say(f"Memory Console is ready at {url(self.host, self.port)} (Ctrl-C stops it).")

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True


def _mcp_socket() -> socket.socket:
    try:
        return listen_locally(settings.MCP_PORT)
    except OSError as error:
        raise CommandError(f"Cannot listen on MCP_PORT {settings.MCP_PORT}: {error.strerror}.") from None


def answers(host: str, port: int) -> bool:
    client = http.client.HTTPConnection(reachable_host(host), port, timeout=2)
    try:
        client.request("GET", "/healthz")
        client.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        client.close()
    return True


def reachable_host(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104


def url(host: str, port: int) -> str:
    name = reachable_host(host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
