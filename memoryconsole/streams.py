"""Uploaded files: a limit for their size, and safe names."""

import re
from pathlib import PurePosixPath
from typing import Any

from memoryconsole.errors import TooLarge
from memoryconsole.scrub import scrub

PART = 1024 * 1024
LONGEST_NAME = 150
# Also marks that change the direction of text, which could make a name seem to have another ending.
UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f"*/:<>?\\|\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]')


class Limited:
    """A stream that raises `TooLarge` after `most` bytes, before the disk is full."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream = stream
        self._most = most
        self.size_read = 0

    def read(self, size: int = -1) -> bytes:
        part: bytes = self._stream.read(min(size, PART) if size > 0 else PART)
        self.size_read += len(part)
        if self.size_read > self._most:
            raise TooLarge("A file", self._most)
        return part


def safe_name(raw: str) -> str:
    """The name without credentials, folders, characters that are special to a system, and dots at its ends."""
    name = UNSAFE.sub("_", PurePosixPath(scrub(raw)[0].replace("\\", "/")).name).strip(" .")
    stem, dot, ending = name.rpartition(".")
    if len(name) > LONGEST_NAME and dot and len(ending) <= 16:
        name = f"{stem[: LONGEST_NAME - len(ending) - 1]}.{ending}"
    return name[:LONGEST_NAME] or "file"
