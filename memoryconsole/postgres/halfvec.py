"""Send vectors to PostgreSQL in its binary format: parsing a text of 1,536 numbers takes longer than many a search."""

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format


class HalfVector(bytes):
    """The binary format of `halfvec`: the number of dimensions, two reserved bytes, and 16-bit floats."""

    @classmethod
    def of(cls, numbers: Sequence[float]) -> "HalfVector":
        return cls(struct.pack(f">hh{len(numbers)}e", len(numbers), 0, *numbers))


class Vectors(bytes):
    """The binary format of `vector[]`: many vectors of 32-bit floats, which Python copies without looking at each.

    It contains the OID of the type `vector`, which differs from database to database.
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
    """Sends no type, so a statement has to cast the parameter to `halfvec` or `vector[]`."""

    format = Format.BINARY

    def dump(self, obj: HalfVector | Vectors) -> bytes:
        return obj


psycopg.adapters.register_dumper(HalfVector, _AsReceived)
psycopg.adapters.register_dumper(Vectors, _AsReceived)
