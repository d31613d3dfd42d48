"""Secrets that an installation generates and keeps in files that only their owner can read."""

import os
from base64 import urlsafe_b64encode
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def kept_secret(directory: Path, name: str) -> str:
    """The secret of this name, generated at first use: 32 random bytes, as Fernet needs them.

    Two processes may start at once: each writes a complete file of its own, and the first hard link decides which one
    both read.
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
