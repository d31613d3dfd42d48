"""Vectors on their way to PostgreSQL, in the form it keeps them in: a text of 1,536 numbers takes it longer to read
than many a search takes."""

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format


class HalfVector(bytes):
    """What `halfvec` receives: how many numbers, two reserved bytes, and the numbers as 16-bit floats."""

    @classmethod
    def of(cls, numbers: Sequence[float]) -> "HalfVector":
        return cls(struct.pack(f">hh{len(numbers)}e", len(numbers), 0, *numbers))


class Vectors(bytes):
    """What `vector[]` receives: many at once, as 32-bit floats, which Python hands over without looking at each.

    PostgreSQL wants to be told the number that the type `vector` has in this database.
    """

    @classmethod
    def of(cls, vectors: Sequence["array[float]"], type_number: int) -> "Vectors":
        head = struct.pack(">iiIii", 1, 0, type_number, len(vectors), 1)
        return cls(b"".join([head, *_elements(vectors)]))


def _elements(vectors: Iterable["array[float]"]) -> Iterable[bytes]:
    for vector in vectors:
        yield struct.pack(">ihh", 4 + 4 * len(vector), len(vector), 0)
        yield _big_endian(vector)


def _big_endian(vector: "array[float]") -> bytes:
    swapped = array("f", vector)
    if sys.byteorder == "little":
        swapped.byteswap()
    return swapped.tobytes()


class _AsReceived(Dumper):
    """The type is left open, so a statement says `::halfvec` or `::vector[]` where it uses one."""

    format = Format.BINARY

    def dump(self, obj: HalfVector | Vectors) -> bytes:
        return obj


psycopg.adapters.register_dumper(HalfVector, _AsReceived)
psycopg.adapters.register_dumper(Vectors, _AsReceived)
