"""The directory of one cluster: its data, its socket and its lock files.

For an ordinary user it is `DATA_DIR/postgres`. Root cannot use that: the server runs as another account, and DATA_DIR
may lie below a directory only root may enter. Instead of opening it, root keeps the cluster in /var/lib/memory-console
and `DATA_DIR/postgres` is a link to it, so a deleted DATA_DIR still means an empty start.
"""

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memoryconsole.embedded.account import Account, owner_of, unprivileged
from memoryconsole.embedded.errors import EmbeddedPostgresError

SHARED = Path("/var/lib/memory-console")
BELONGS_TO = "belongs-to"
# A socket's path may have 107 bytes, and PostgreSQL adds "/.s.PGSQL.5432.lock" to the directory.
LONGEST_SOCKET_DIRECTORY = 85
# In postmaster.pid, counted from 0.
SOCKET_LINE = 4


@dataclass(frozen=True)
class Home:
    path: Path
    account: Account

    @property
    def cluster(self) -> Path:
        return self.path / "data"

    @property
    def lock(self) -> Path:
        """Held exclusively while the server is made, started or stopped."""
        return self.path / "lock"

    @property
    def users(self) -> Path:
        """Held shared by every process that uses the server, for as long as it lives."""
        return self.path / "users"

    @property
    def socket_directory(self) -> Path:
        inside = self.path / "run"
        if len(os.fsencode(inside)) <= LONGEST_SOCKET_DIRECTORY:
            return inside
        name = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        return self._socket_directory_in_use() or Path(tempfile.gettempdir()) / f"memory-console-{name}"

    def _socket_directory_in_use(self) -> Path | None:
        """Where the running server listens: it may have been started with another TMPDIR."""
        try:
            directory = Path(read_path(self.cluster / "postmaster.pid").splitlines()[SOCKET_LINE])
            return directory if directory.is_absolute() and directory.is_dir() else None
        except (OSError, IndexError):
            return None


def read_path(file: Path) -> str:
    """Paths are bytes, which may not be text in this locale; `fsdecode` keeps them as they are."""
    return os.fsdecode(file.read_bytes())


def open_home(data_dir: Path) -> Home:
    place = data_dir / "postgres"
    with kept_in(data_dir):
        data_dir.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            _make(place)
        home = place.resolve(strict=True)
        account = owner_of(home / "data") if (home / "data").exists() else unprivileged()
    return Home(home, account)


@contextmanager
def kept_in(data_dir: Path) -> Iterator[None]:
    """Say in one line why the directory cannot be used, if it cannot."""
    try:
        yield
    except OSError as error:
        raise EmbeddedPostgresError(
            f"The database cannot be kept in {data_dir}: {error.strerror}. "
            "Make the directory writable, or point DATA_DIR somewhere else."
        ) from error


def make_socket_directory(home: Home) -> None:
    """Create it, or check that it is ours: its name below /tmp can be guessed by others."""
    path = home.socket_directory
    try:
        path.mkdir(mode=0o700)
        home.account.own(path)
    except FileExistsError:
        pass
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != home.account.uid or status.st_mode & 0o077:
        raise EmbeddedPostgresError(f"{path} should be a directory private to the database server. Remove it.")


def _make(place: Path) -> None:
    if place.is_symlink():
        raise EmbeddedPostgresError(
            f"{place} points to {place.readlink()}, which is missing. Bring it back, or remove the link to start empty."
        )
    if os.geteuid() != 0:
        place.mkdir(mode=0o700, exist_ok=True)
        return
    SHARED.mkdir(mode=0o711, parents=True, exist_ok=True)
    SHARED.chmod(0o711)
    home = Path(tempfile.mkdtemp(prefix="cluster-", dir=SHARED))
    home.chmod(0o711)
    (home / BELONGS_TO).write_bytes(os.fsencode(place))
    try:
        place.symlink_to(home)
    except FileExistsError:
        shutil.rmtree(home)


def abandoned() -> list[Path]:
    """Root's clusters whose data directory is gone. They are kept, because its disk may just not be mounted."""
    if os.geteuid() != 0 or not SHARED.is_dir():
        return []
    return [home for home in sorted(SHARED.glob("cluster-*")) if not _is_linked(home)]


def _is_linked(home: Path) -> bool:
    try:
        return Path(read_path(home / BELONGS_TO)).resolve() == home
    except OSError:
        return False
