"""The account that runs PostgreSQL. It refuses to run as root, so root lets an existing account run it."""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from memoryconsole.embedded.errors import EmbeddedPostgresError

CANDIDATES = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    uid: int
    gid: int

    def own(self, path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.gid)

    def run(
        self, command: Sequence[str], *, stdout: IO[Any] | int, timeout: float = 180
    ) -> subprocess.CompletedProcess[str]:
        """Run a PostgreSQL program as this account, and without our environment, which holds keys."""
        become: dict[str, Any] = {}
        if os.geteuid() == 0:
            become = {"user": self.uid, "group": self.gid, "extra_groups": []}
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
            umask=0o077,
            text=True,
            timeout=timeout,
            check=False,
            **become,
        )


def owner_of(path: Path) -> Account:
    status = path.stat()
    return Account(status.st_uid, status.st_gid)


def unprivileged() -> Account:
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise EmbeddedPostgresError(
        "PostgreSQL does not run as root, and there is no account to hand it to. "
        "Start the console as another user, or set DATABASE_URL."
    )
