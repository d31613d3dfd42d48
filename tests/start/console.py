"""A whole console in processes of its own, started the way a user starts it."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from tests.environment import ROOT

PATIENCE = 150


def manage(
    *arguments: str, data_dir: Path, said: str | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DATA_DIR": str(data_dir), **variables}
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    return subprocess.run(
        command, env=environment, input=said, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def wait_until(what: Callable[[], object], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain"
        time.sleep(0.05)


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Console:
    def __init__(self, data_dir: Path, port: int, **variables: str) -> None:
        self.data_dir = data_dir
        self.port = port
        environment = {**os.environ, "DATA_DIR": str(data_dir), "PORT": str(port), "PG_FSYNC": "yes", **variables}
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "up"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line)

    @property
    def output(self) -> str:
        return "".join(self.lines)

    def wait_until_ready(self) -> "Console":
        wait_until(lambda: "ready at" in self.output or self.process.poll() is not None)
        assert self.process.poll() is None, self.output
        wait_until(lambda: self.get("/readyz")[0] == 200)
        return self

    def get(self, path: str, key: str = "", body: object = None) -> tuple[int, dict[str, object]]:
        """Status and JSON of a request; status 0 when nobody answers."""
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"} if key else {}
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"http://127.0.0.1:{self.port}{path}", data=data, headers=headers)
        try:
            with urlopen(request, timeout=15) as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            error.close()
            return error.code, {}
        except (URLError, OSError):
            return 0, {}

    def family(self) -> dict[int, str]:
        """Every process below this console, by pid, and PostgreSQL itself, which is nobody's child."""
        found = {self.process.pid: "up"}
        for _ in range(3):
            found |= {pid: command for pid, (parent, command) in processes().items() if parent in found}
        return found | dict.fromkeys(self.postgres(), "postgres")

    def postgres(self) -> list[int]:
        cluster = str((self.data_dir / "postgres" / "data").resolve())
        return [pid for pid, (_, command) in processes().items() if f"-D {cluster}" in command]

    def children(self, command: str) -> list[int]:
        """The processes that run a part of the console, in whichever way they were started."""
        starts = (f"manage.py {command}", f"memoryconsole.{command}")
        return [pid for pid, said in self.family().items() if any(start in said for start in starts)]

    def signal(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


def processes() -> dict[int, tuple[int, str]]:
    """pid → (parent, command line) of everything that runs; a zombie has no command line and counts as gone."""
    found = {}
    listing = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,args="], capture_output=True, text=True, check=True
    )
    for line in listing.stdout.splitlines():
        pid, parent, state, command = line.split(maxsplit=3)
        if not state.startswith("Z"):
            found[int(pid)] = (int(parent), command)
    return found
