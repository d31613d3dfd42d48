"""The embedded server as the processes that share it see it: joining, checking and leaving it."""

import atexit
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.pq import PGconn, Ping

from memoryconsole.embedded import locks
from memoryconsole.embedded.cluster import START_SECONDS, Cluster
from memoryconsole.embedded.errors import EmbeddedPostgresError
from memoryconsole.embedded.home import Home, kept_in, open_home

DATABASE = "memoryconsole"
USER = "postgres"
# Only a part of the socket's name. Given explicitly, because PGPORT in the environment would change it.
PORT = 5432


@dataclass(frozen=True)
class Address:
    host: str
    port: int = PORT
    user: str = USER

    def parameters(self, database: str) -> dict[str, Any]:
        return {"host": self.host, "port": self.port, "user": self.user, "dbname": database, "connect_timeout": 5}


def address_of(home: Home) -> Address:
    return Address(str(home.socket_directory))


@dataclass(frozen=True)
class Membership:
    """That this process uses the server. The shared lock behind it lasts as long as the process."""

    pid: int
    home: Home
    address: Address
    descriptor: int


class Server:
    def __init__(self, data_dir: Path, *, bin_dir: str = "", durable: bool = True) -> None:
        self.data_dir = data_dir
        self.bin_dir = bin_dir
        self.durable = durable
        self._member: Membership | None = None
        self._thread_lock = threading.Lock()

    def ensure_running(self) -> Address:
        """The address of the running server, which only the first call of a process checks and starts."""
        member = self._member
        if member and member.pid == os.getpid():
            return member.address
        with self._thread_lock, kept_in(self.data_dir):
            return self._join().address

    def has_died(self) -> bool:
        """Only looks at the process, which takes microseconds; `revive` connects."""
        return self._member is not None and not self._cluster(self._member.home).is_running()

    def revive(self) -> bool:
        """Connect to the server, and start it if that fails; True if it had to be started."""
        home = self._member.home if self._member else open_home(self.data_dir)
        if reachable(home):
            return False
        with kept_in(self.data_dir), locks.exclusive(home.lock):
            if reachable(home):
                return False
            self._bring_up(home)
            return True

    def leave(self) -> None:
        """The last process to leave stops the server. A forked child that never joined does nothing."""
        member, self._member = self._member, None
        if member is None or member.pid != os.getpid():
            return
        os.close(member.descriptor)
        if not member.home.path.exists():
            return
        with locks.exclusive(member.home.lock), locks.unless_shared(member.home.users) as alone:
            if alone:
                self._cluster(member.home).stop()

    def stop(self, mode: str = "fast") -> None:
        """Stop the server even if it is in use."""
        home = open_home(self.data_dir)
        with locks.exclusive(home.lock):
            self._cluster(home).stop(mode)

    def is_running(self) -> bool:
        return (self.data_dir / "postgres").exists() and reachable(open_home(self.data_dir))

    def bin_directory(self) -> Path:
        return self._cluster(open_home(self.data_dir)).bin_dir

    def _join(self) -> Membership:
        if self._member and self._member.pid == os.getpid():
            return self._member
        home = open_home(self.data_dir)
        # Locked before checking, so that no other process can be the last and stop the server meanwhile.
        descriptor = locks.shared(home.users)
        try:
            if not reachable(home):
                with locks.exclusive(home.lock):
                    self._bring_up(home)
        except BaseException:
            os.close(descriptor)
            raise
        atexit.unregister(self.leave)
        atexit.register(self.leave)
        self._member = Membership(os.getpid(), home, address_of(home), descriptor)
        return self._member

    def _bring_up(self, home: Home) -> None:
        if _settled(home) is not Ping.OK:
            cluster = self._cluster(home)
            cluster.make()
            cluster.check_socket_in_sight()
            # It may run without answering, because it hangs or its socket was removed.
            cluster.stop()
            cluster.start()
        _create_database(home)

    def _cluster(self, home: Home) -> Cluster:
        log = self.data_dir / "postgres.log"
        return Cluster(home, bin_dir=self.bin_dir, log=log, durable=self.durable)


def reachable(home: Home) -> bool:
    """Whether the console's own database accepts a connection; a running process may not."""
    try:
        psycopg.connect(**address_of(home).parameters(DATABASE)).close()
    except psycopg.OperationalError:
        return False
    return True


def _settled(home: Home) -> Ping:
    """Wait while the server says that it is starting, recovering or shutting down."""
    deadline = time.monotonic() + START_SECONDS
    while (state := _ping(home)) is Ping.REJECT and time.monotonic() < deadline:
        time.sleep(0.1)
    return state


def _ping(home: Home) -> Ping:
    target = psycopg.conninfo.make_conninfo(**address_of(home).parameters("postgres"))
    return Ping(PGconn.ping(target.encode()))


def _create_database(home: Home) -> None:
    try:
        with psycopg.connect(**address_of(home).parameters("postgres"), autocommit=True) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
            if not known:
                connection.execute(f"CREATE DATABASE {DATABASE}")
    except psycopg.Error as error:
        raise EmbeddedPostgresError(f"The database server runs but cannot be used: {error}") from error
