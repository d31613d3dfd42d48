"""Secrets a fresh installation makes for itself and keeps, readable only by their owner."""

import os
from base64 import urlsafe_b64encode
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def kept_secret(directory: Path, name: str) -> str:
    """The secret of this name, made at first use; 32 random bytes, which is also what Fernet wants.

    Two processes may start at once on a fresh machine: each writes a whole file of its own, and the hard link
    decides which one everybody reads.
    """
    path = directory / "secrets" / name
    try:
        if not path.exists():
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.parent.mkdir(exist_ok=True, mode=0o700)
            _make(path)
        return path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(f"DATA_DIR ({directory}) cannot be used: {error}.") from None


def _make(path: Path) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(urlsafe_b64encode(os.urandom(32)))
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass  # another process was first
    finally:
        draft.unlink()
