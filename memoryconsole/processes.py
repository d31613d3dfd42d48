"""Child processes: started again when they crash, and ended with this process."""

import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

PR_SET_PDEATHSIG = 1
LONGEST_PAUSE = 30.0
# After running this long a child counts as healthy, and its crashes are counted anew.
HEALTHY_SECONDS = 30.0


def module_command(name: str, *arguments: str) -> list[str]:
    """The command that runs a module as a program, without loading Django's apps; PYTHONPATH must lead to it.

    What it prints is UTF-8 whatever the locale, and modules in the working directory cannot take the place of others.
    """
    return [sys.executable, "-X", "utf8", "-P", "-m", name, *arguments]


class Child:
    """One process that is started again when it ends by itself, after a pause that grows with every quick crash."""

    when_again = ""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.command = command
        self.environment = {**os.environ, **(environment or {})}
        self.crashes = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._next_start = 0.0

    def tend(self) -> str | None:
        """Start the process if it should run and its pause is over. A message if it has ended."""
        now = time.monotonic()
        if self._process and self._process.poll() is not None:
            code = self._process.returncode
            self.kill()
            self.crashes = 1 if now - self._started > HEALTHY_SECONDS else self.crashes + 1
            self._next_start = now + min(0.1 * 4 ** (self.crashes - 1), LONGEST_PAUSE)
            return f"The {self.name} stopped ({describe_exit(code)}); starting it again{self.when_again}."
        if self._process is None and now >= self._next_start and self.is_wanted():
            self._process = self._start()
            self._started = now
        return None

    def is_wanted(self) -> bool:
        return True

    def _start(self, *sockets: int) -> "subprocess.Popen[bytes]":
        # In a session of its own it does not get our Ctrl-C: we stop the children in order.
        return subprocess.Popen(
            self.command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=sockets,
        )

    def stop(self, seconds: float) -> None:
        if self._process is None:
            return
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        self.kill()

    def kill(self) -> None:
        """Kill the process, if it still runs, and its own children."""
        if self._process:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


class ChildOnDemand(Child):
    """A process that is started when somebody connects to its socket. The socket stays open in this process.

    So it costs nothing until it is used, and connections wait while it is started again.
    """

    when_again = " when it is needed"

    def __init__(self, name: str, command: Sequence[str], listening: socket.socket) -> None:
        super().__init__(name, [*command, "--socket", str(listening.fileno())])
        self.listening = listening

    def is_wanted(self) -> bool:
        return bool(select.select([self.listening], [], [], 0)[0])

    def _start(self, *sockets: int) -> "subprocess.Popen[bytes]":
        return super()._start(self.listening.fileno(), *sockets)


def listen_locally(port: int) -> socket.socket:
    """A socket on the loopback interface; port 0 chooses a free port."""
    return socket.create_server(("127.0.0.1", port), backlog=128)


def describe_exit(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def end_with_parent(parent: int) -> None:
    """Have SIGTERM sent to this process when `parent` dies, even by kill -9."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
    else:
        threading.Thread(target=_watch_parent, args=[parent], daemon=True).start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
