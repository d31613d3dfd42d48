"""File locks, which the kernel releases when a process ends in any way."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoryconsole.embedded.account import owner_of


def open_lock(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    if os.geteuid() == 0:
        # If root runs a user's console, the user must still be able to open the file afterwards.
        owner = owner_of(path.parent)
        os.fchown(descriptor, owner.uid, owner.gid)
    return descriptor


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    descriptor = open_lock(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def shared(path: Path) -> int:
    """A descriptor whose lock lasts until it is closed or the process is gone."""
    descriptor = open_lock(path)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


@contextmanager
def unless_shared(path: Path) -> Iterator[bool]:
    """True if no other process holds the lock; then none can take it in the meantime."""
    descriptor = open_lock(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = True
        except BlockingIOError:
            alone = False
        yield alone
    finally:
        os.close(descriptor)
