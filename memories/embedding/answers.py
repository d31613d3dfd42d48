"""Read the answer of an embeddings API. If anything in it is wrong, none of its vectors is used.

Vectors stay single-precision arrays until they are stored. Lists of floats take five times the memory, and creating
them takes longer than everything else that is done with a vector.
"""

import math
import sys
from array import array
from collections.abc import Sequence
from typing import Any, TypeAlias

from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from memories.asking import unusable
from memoryconsole.counting import counted

API = "embeddings API"
Vector: TypeAlias = "array[float]"


@with_config(ConfigDict(val_json_bytes="base64"))
class _Item(TypedDict):
    """We ask for base64; a server that does not know it answers with a list."""

    index: Any
    embedding: bytes | list[float]


class _Answer(TypedDict):
    data: list[_Item]


# Parses JSON and base64 together, in a quarter of the time that Python needs for the base64 alone.
_ANSWER = TypeAdapter(_Answer)


def vectors_in(answer: bytes, number: int) -> list[Vector]:
    """The `number` vectors of an answer, in the order of the texts.

    A wrong count, unclear order, or a vector that is zero or not finite raises `Unavailable`. An answer that cannot be
    parsed raises the parser's own error.
    """
    data = _ANSWER.validate_json(answer)["data"]
    by_index = {item["index"]: item["embedding"] for item in data}
    if len(data) != number or by_index.keys() != set(range(number)):
        raise unusable(API, f"of {counted(number, 'vector')} asked for {len(data)} came, or their order is unclear")
    vectors = [_numbers(by_index[index]) for index in range(number)]
    for vector in vectors:
        if not _is_ordinary(vector):
            unit(vector)
    return vectors


def _numbers(embedding: bytes | Sequence[float]) -> Vector:
    numbers = array("f", embedding)
    if isinstance(embedding, bytes) and sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def unit(vector: Vector) -> Vector:
    """The vector scaled to length 1, which half-precision columns store most accurately."""
    norm = math.hypot(*vector)
    if not 1e-12 < norm < math.inf:
        raise unusable(API, "a vector is zero or not finite")
    return vector if abs(norm - 1) < 1e-3 else array("f", [x / norm for x in vector])


# The high byte of a float holds its sign and most of its exponent. Below are its values for numbers under 2 and under
# 2e-12.
_HIGH_BYTES = slice(3 if sys.byteorder == "little" else 0, None, 4)
_BELOW_2 = bytes(byte for byte in range(256) if byte & 0x7F < 0x40)
_TINY = bytes(byte for byte in range(256) if byte & 0x7F < 0x2C)


def _is_ordinary(vector: Vector) -> bool:
    """Whether all numbers are below 2, so finite, and not all are close to zero.

    Computing the length would tell the same but takes ten times as long.
    """
    high = vector.tobytes()[_HIGH_BYTES]
    return not high.translate(None, _BELOW_2) and bool(high.translate(None, _TINY))
