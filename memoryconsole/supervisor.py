"""The process that keeps servers and worker running. `manage.py up` becomes it when everything is prepared.

It loads none of Django's apps, because it only watches and would keep 90 MB for them.
"""

import http.client
import os
import signal
import socket
import sys
import time
from types import FrameType

from django.conf import settings

from memoryconsole import embedded
from memoryconsole.processes import Child, ChildOnDemand, listen_locally, module_command

# The signals that end it. They wait while it takes over, because only then can it stop what is running.
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

TICK_SECONDS = 0.1
# Looking at the database's process is cheap, so it is done more often than connecting to it.
GLANCE_SECONDS = 0.3
DATABASE_CHECK_SECONDS = 5.0
STOP_SECONDS = 12.0
# A web server that crashes so often before it has ever answered is given up.
HOPELESS_CRASHES = 4


class Supervisor:
    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.answered = False
        self.stopping = False
        manage = [sys.executable, str(settings.BASE_DIR / "manage.py")]
        parent = ["--parent", str(os.getpid())]
        listening = _mcp_socket()
        environment = {"MCP_PORT": str(listening.getsockname()[1])}
        web = module_command("memoryconsole.web", "--host", host, "--port", str(port), *parent)
        self.web = Child("web server", web, environment)
        self.mcp = ChildOnDemand("MCP server", [*manage, "mcpserver", *parent], listening)
        self.worker = Child("worker", [*manage, "worker", *parent])
        self._next_glance = self._next_database_check = 0.0

    def run(self) -> None:
        for number in ENDING:
            signal.signal(number, self._ask_to_stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        try:
            while not self.stopping:
                self._tick()
                time.sleep(TICK_SECONDS)
            _say("Stopping …")
        finally:
            self.web.stop(STOP_SECONDS)
            self.mcp.stop(STOP_SECONDS)
            self.worker.stop(STOP_SECONDS)
        if settings.EMBEDDED_POSTGRES:
            embedded.leave()
        _say("Stopped.")

    def _tick(self) -> None:
        self._watch_database()
        for child in (self.web, self.mcp, self.worker):
            if news := child.tend():
                _say(news)
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
                _say("PostgreSQL was gone; it runs again.")
        except embedded.EmbeddedPostgresError as error:
            _say(str(error))
            self._next_glance = now + DATABASE_CHECK_SECONDS

    def _greet(self) -> None:
        if self.web.crashes >= HOPELESS_CRASHES:
            sys.exit("The web server does not start; what it said is above.")
        self.answered = answers(self.host, self.port)
        if self.answered:
            _say(f"Memory Console is ready at {url(self.host, self.port)} (Ctrl-C stops it).")

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True


def _mcp_socket() -> socket.socket:
    try:
        return listen_locally(settings.MCP_PORT)
    except OSError as error:
        sys.exit(f"Cannot listen on MCP_PORT {settings.MCP_PORT}: {error.strerror}.")


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


def _say(line: str) -> None:
    print(line, flush=True)


def main(host: str, port: str) -> None:
    if settings.EMBEDDED_POSTGRES:
        try:
            embedded.ensure_running()
        except embedded.EmbeddedPostgresError as error:
            sys.exit(str(error))
    Supervisor(host, int(port)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
