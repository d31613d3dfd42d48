"""A console for benchmarks that use HTTP: `manage.py up` with a temporary data directory."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from bench import ROOT


class Console:
    """A client of a console, with a key for all instances and one persistent connection per thread."""

    def __init__(self, url: str, key: str, pid: int = 0) -> None:
        self.url, self.key, self.pid = url, key, pid
        self._local = threading.local()

    def call(self, method: str, path: str, body: object = None, **query: Any) -> Any:
        """The parsed JSON answer. Any status but success raises an error."""
        status, answer = self.raw(method, path + ("?" + urlencode(query, doseq=True) if query else ""), body)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer[:300]!r}")
        return json.loads(answer)

    def raw(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        data = json.dumps(body) if body is not None else None
        try:
            return self._send(method, path, data, headers)
        except (ConnectionError, http.client.RemoteDisconnected):
            # The server closes connections that were idle for long.
            del self._local.connection
            return self._send(method, path, data, headers)

    def _send(self, method: str, path: str, data: str | None, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = self._connection()
        connection.request(method, f"/api/v1{path}", data, headers)
        response = connection.getresponse()
        return response.status, response.read()

    def _connection(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            address = urlsplit(self.url)
            connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=120)
            connection.connect()
            self._local.connection = connection
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def processes(self, command: str) -> list[int]:
        """The processes in which `up` runs a command, followed by their children."""
        listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
        rows = [line.split(maxsplit=2) for line in listing.stdout.splitlines()]
        starts = (f"manage.py {command}", f"memoryconsole.{command}")
        children = [(int(pid), args) for pid, parent, args in rows if int(parent) == self.pid]
        roots = [pid for pid, args in children if any(start in args for start in starts)]
        return roots + [int(pid) for pid, parent, _ in rows if int(parent) in roots]

    def wait_until_embedded(self, slug: str, seconds: float = 900) -> None:
        deadline = time.monotonic() + seconds
        while self.call("GET", "/memories", instanceId=slug, embedding="pending", limit=1)["total"]:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{slug} was not embedded within {seconds:.0f} s")
            time.sleep(0.5)


@contextmanager
def started_console(**environment: str) -> Iterator[Console]:
    """Start a console, and at the end stop it and delete its data."""
    data_dir = Path(tempfile.mkdtemp(prefix="mc-bench-"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    variables = {**os.environ, "IGNORE_DOTENV": "yes", "DATABASE_URL": "", "DATA_DIR": str(data_dir), **environment}
    manage = [sys.executable, str(ROOT / "manage.py")]
    process = subprocess.Popen(
        [*manage, "up", "--no-demo", "--port", str(port)], env=variables, stdout=subprocess.DEVNULL
    )
    try:
        _wait_until_ready(port, process)
        created = subprocess.run(
            [*manage, "createapikey", "--all-instances"], env=variables, check=True, capture_output=True, text=True
        )
        yield Console(f"http://127.0.0.1:{port}", created.stdout.strip(), process.pid)
    finally:
        process.terminate()
        process.wait(60)
        cluster = (data_dir / "postgres").resolve()
        shutil.rmtree(data_dir, ignore_errors=True)
        shutil.rmtree(cluster, ignore_errors=True)


def _wait_until_ready(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise RuntimeError("The console did not start.")
