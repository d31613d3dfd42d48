"""Vectors on their way to PostgreSQL, in the form it keeps them in: a text of 1,536 numbers takes it longer to read
than many a search takes."""

import struct
from collections.abc import Sequence

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format


class HalfVector(bytes):
    """What `halfvec` receives: how many numbers, two reserved bytes, and the numbers as 16-bit floats."""

    @classmethod
    def of(cls, numbers: Sequence[float]) -> "HalfVector":
        return cls(struct.pack(f">hh{len(numbers)}e", len(numbers), 0, *numbers))


class _AsReceived(Dumper):
    """The type is left open, so a statement says `::halfvec` where it uses one."""

    format = Format.BINARY

    def dump(self, obj: HalfVector) -> bytes:
        return obj


psycopg.adapters.register_dumper(HalfVector, _AsReceived)
