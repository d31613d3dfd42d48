"""Reading what an embeddings API answers: whatever is wrong with it, no vector of it is used.

Vectors stay arrays of single precision on their way: as lists of floats they take five times the memory, and making
those takes longer than anything else that is done with them.
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
    """Base64 is what is asked for; whoever does not know it answers with a list."""

    index: Any
    embedding: bytes | list[float]


class _Answer(TypedDict):
    data: list[_Item]


# Reads JSON and base64 in one go, in a quarter of the time that Python takes for the base64 alone.
_ANSWER = TypeAdapter(_Answer)


def vectors_in(answer: bytes, number: int) -> list[Vector]:
    """In the order of the texts, each pointing somewhere; anything else is `Unavailable`, or an error of reading."""
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
    """Of length 1, which half-precision columns hold best."""
    norm = math.hypot(*vector)
    if not 1e-12 < norm < math.inf:
        raise unusable(API, "a vector is zero or not finite")
    return vector if abs(norm - 1) < 1e-3 else array("f", [x / norm for x in vector])


# The byte of a number that has its sign and most of its exponent: what it is for numbers below 2, and below 2e-12.
_HIGH = slice(3 if sys.byteorder == "little" else 0, None, 4)
_BELOW_2 = bytes(byte for byte in range(256) if byte & 0x7F < 0x40)
_TINY = bytes(byte for byte in range(256) if byte & 0x7F < 0x2C)


def _is_ordinary(vector: Vector) -> bool:
    """Whether all its numbers are finite, because they are small, and not all next to nothing.

    Its length would say the same, at ten times the cost.
    """
    high = vector.tobytes()[_HIGH]
    return not high.translate(None, _BELOW_2) and bool(high.translate(None, _TINY))
