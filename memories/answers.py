"""Reading what an embeddings API answers: whatever is wrong with it, no vector of it is used.

Vectors stay arrays of single precision on their way: as lists of floats they take five times the memory, and making
those takes longer than anything else that is done with them.
"""

import math
import sys
from array import array
from base64 import b64decode
from collections.abc import Sequence
from typing import TypeAlias

from pydantic_core import from_json

from memories.asking import unusable

API = "embeddings API"
Vector: TypeAlias = "array[float]"


def vectors_in(answer: bytes, number: int) -> list[Vector]:
    """Of length 1 and in the order of the texts; anything else is `Unavailable`, or an error of reading."""
    data = from_json(answer)["data"]
    by_index = {item["index"]: item["embedding"] for item in data}
    if len(data) != number or by_index.keys() != set(range(number)):
        raise unusable(API, f"{number} vectors were asked for, {len(data)} came or their order is unclear")
    return [_unit(_numbers(by_index[index])) for index in range(number)]


def _numbers(embedding: str | Sequence[float]) -> Vector:
    """Base64 is what is asked for; whoever does not know it answers with a list."""
    if not isinstance(embedding, str):
        return array("f", embedding)
    numbers = array("f", b64decode(embedding))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _unit(vector: Vector) -> Vector:
    """Of length 1, which half-precision columns hold best."""
    norm = math.hypot(*vector)
    if not 1e-12 < norm < math.inf:
        raise unusable(API, "a vector is zero or not finite")
    return vector if abs(norm - 1) < 1e-3 else array("f", [x / norm for x in vector])
