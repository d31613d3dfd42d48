"""Creating, starting and stopping a cluster. The caller holds the lock and knows whether others use the cluster."""

import functools
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from memoryconsole.embedded import binaries, memory
from memoryconsole.embedded.errors import EmbeddedPostgresError
from memoryconsole.embedded.home import SHARED, Home, make_socket_directory

START_SECONDS = 120
STOP_SECONDS = 60
LARGEST_LOG = 2 * 1024 * 1024
# Parallel index builds need this much in /dev/shm; containers often have 64 MB.
SMALLEST_DEV_SHM = 512 * 1024 * 1024

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "work_mem": "24MB",
    "maintenance_work_mem": "256MB",
    "random_page_cost": "1.1",
    "effective_io_concurrency": "64",
    "max_wal_size": "2GB",
    "jit": "off",
    "autovacuum": "on",
    # A first import is searched and listed right away: its statistics should not be a minute behind.
    "autovacuum_naptime": "10s",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Statements and values never reach the log: what somebody deletes must not live on there.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
    "log_line_prefix": "%m ",
}
# For tests: a crash may lose the latest commits, and a crash of the machine everything.
UNSAFE_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "maintenance_work_mem": "64MB",
}


class Cluster:
    def __init__(self, home: Home, *, bin_dir: str, log: Path, durable: bool) -> None:
        self.home = home
        self.log = log
        self.durable = durable
        self._chosen_bin_dir = bin_dir

    @functools.cached_property
    def bin_dir(self) -> Path:
        return binaries.find(self._chosen_bin_dir, SHARED)

    def make(self) -> None:
        """Run initdb in a temporary directory and rename that, so that an interrupted run leaves no cluster."""
        if self.home.cluster.exists():
            return
        for leftover in self.home.path.glob("data.new-*"):
            shutil.rmtree(leftover)
        draft = Path(tempfile.mkdtemp(prefix="data.new-", dir=self.home.path))
        self.home.account.own(draft)
        options = ["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--data-checksums", "--no-instructions"]
        options += self._locale_options()
        if not self.durable:
            options.append("--no-sync")
        self._run("initdb", "-D", str(draft), *options, failure="The database could not be created")
        draft.rename(self.home.cluster)

    def start(self) -> None:
        self._check_version()
        self._clear_the_way()
        make_socket_directory(self.home)
        _rotate(self.log)
        options = " ".join(f"-c {shlex.quote(f'{name}={value}')}" for name, value in self._settings().items())
        arguments = ["start", "-s", "-w", "-t", str(START_SECONDS), "-D", str(self.home.cluster), "-o", options]
        self._run("pg_ctl", *arguments, failure="PostgreSQL did not start")

    def stop(self, mode: str = "fast") -> None:
        """Stop and wait. pg_ctl would wait until the pid is gone, but a killed server keeps it as a zombie."""
        if not self.is_running():
            return
        arguments = ["stop", "-s", "-W", "-m", mode, "-D", str(self.home.cluster)]
        try:
            self._run("pg_ctl", *arguments, failure="PostgreSQL did not stop")
        except EmbeddedPostgresError:
            if self.is_running():
                raise
        deadline = time.monotonic() + STOP_SECONDS
        while self.is_running():
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(f"PostgreSQL did not stop in {STOP_SECONDS} seconds; see {self.log}.")
            time.sleep(0.02)

    def _settings(self) -> dict[str, str]:
        settings = {**SETTINGS, **memory.settings(), "unix_socket_directories": str(self.home.socket_directory)}
        shm = Path("/dev/shm")  # noqa: S108
        if not shm.is_dir() or shutil.disk_usage(shm).total < SMALLEST_DEV_SHM:
            settings["dynamic_shared_memory_type"] = "mmap"
        return settings if self.durable else settings | UNSAFE_SETTINGS

    def _locale_options(self) -> list[str]:
        if binaries.major_version(self.bin_dir) >= 17:
            return ["--locale-provider=builtin", "--locale=C.UTF-8"]
        return ["--locale=C.UTF-8"]

    def _check_version(self) -> None:
        made_by = int((self.home.cluster / "PG_VERSION").read_text())
        have = binaries.major_version(self.bin_dir)
        if made_by != have:
            raise EmbeddedPostgresError(
                f"The database in {self.home.cluster} was made by PostgreSQL {made_by}, and this is PostgreSQL {have}. "
                f"Set PG_BIN_DIR to the bin directory of a PostgreSQL {made_by} to use or dump it, "
                "or point DATA_DIR at a new directory to start empty."
            )

    def _recorded_pid(self) -> int | None:
        try:
            return int((self.home.cluster / "postmaster.pid").read_bytes().split(b"\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return None

    def is_running(self) -> bool:
        """The pid file alone is no proof: after a crash the pid may belong to another program."""
        pid = self._recorded_pid()
        return pid is not None and _works_in(pid, self.home.cluster)

    def check_socket_in_sight(self) -> None:
        """Refuse to stop a healthy server whose socket is in the private /tmp of a service, where we cannot see it."""
        pid = self._recorded_pid()
        if pid is None or not self.is_running() or self.home.socket_directory.parent == self.home.path:
            return
        if _mount_namespace(pid) != _mount_namespace(os.getpid()):
            raise EmbeddedPostgresError(
                f"PostgreSQL runs, and has its socket in a temporary directory that cannot be seen from here, because "
                f"the path of {self.home.path} is too long for one. Stop it and point DATA_DIR at a shorter path."
            )

    def _clear_the_way(self) -> None:
        """Remove what a killed server leaves behind and a new one refuses to start beside.

        That is, for a moment, its child processes. And it is its lock files, if the pid in them exists, although it is
        by now another program's or a zombie's. Lock files with a pid that does not exist PostgreSQL removes itself.
        """
        deadline = time.monotonic() + 20
        while (left := _processes_in(self.home.cluster)) and time.monotonic() < deadline:
            time.sleep(0.05)
        pid = self._recorded_pid()
        if pid and not left and _exists(pid) and not _works_in(pid, self.home.cluster):
            (self.home.cluster / "postmaster.pid").unlink(missing_ok=True)
            (self.home.socket_directory / ".s.PGSQL.5432.lock").unlink(missing_ok=True)

    def _run(self, program: str, *arguments: str, failure: str) -> None:
        # A server whose data directory was deleted must still be stopped.
        place = self.log if self.log.parent.is_dir() else Path(os.devnull)
        try:
            with place.open("ab") as log:
                log.seek(0, os.SEEK_END)
                before = log.tell()
                done = self.home.account.run([str(self.bin_dir / program), *arguments], stdout=log)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EmbeddedPostgresError(f"{failure}: {error}") from error
        if done.returncode != 0:
            with place.open("rb") as log:
                log.seek(before)
                last_lines = log.read().decode(errors="replace").strip().splitlines()[-12:]
            raise EmbeddedPostgresError("\n".join([f"{failure}; {place} ends with:", *last_lines]))


def _rotate(log: Path) -> None:
    if log.exists() and log.stat().st_size > LARGEST_LOG:
        log.replace(log.with_suffix(".log.1"))


def _works_in(pid: int, directory: Path) -> bool:
    """Whether this is a process of the cluster's server: all of them have the cluster as their working directory."""
    if Path("/proc/self/cwd").exists():
        try:
            return Path(f"/proc/{pid}/cwd").readlink() == directory
        except OSError:
            return False
    answer = subprocess.run(["ps", "-p", str(pid), "-o", "command="], capture_output=True, text=True, check=False)
    return "postgres" in answer.stdout and str(directory) in answer.stdout


def _processes_in(directory: Path) -> list[int]:
    if not Path("/proc/self/cwd").exists():
        return []
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and _works_in(int(entry), directory)]


def _mount_namespace(pid: int) -> str:
    """What decides which file systems a process sees; empty if it cannot be read."""
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return ""


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
