"""Vectors in an answer: the same from both forms, each pointing somewhere, or none at all."""

import json
import math
import struct
from array import array
from base64 import b64encode
from typing import Any

import pytest

from memories.asking import Unavailable
from memories.embedding.answers import unit, vectors_in

ONE, OTHER = [0.6, 0.8, 0.0], [0.0, -1.0, 0.0]


def encoded(numbers: list[float]) -> str:
    return b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


def answer(*embeddings: Any) -> bytes:
    return json.dumps({"data": [{"index": n, "embedding": each} for n, each in enumerate(embeddings)]}).encode()


def test_both_forms_say_the_same() -> None:
    wanted = [array("f", ONE), array("f", OTHER)]
    assert vectors_in(answer(ONE, OTHER), 2) == wanted
    assert vectors_in(answer(encoded(ONE), encoded(OTHER)), 2) == wanted
    assert vectors_in(answer(ONE, encoded(OTHER)), 2) == wanted


@pytest.mark.parametrize("length", [1e-6, 0.5, 1.01, 1e6])
def test_every_vector_can_be_given_length_1(length: float) -> None:
    long = [x * length for x in ONE]
    for form in (long, encoded(long)):
        [vector] = vectors_in(answer(form), 1)
        assert unit(vector).tolist() == pytest.approx(ONE, abs=1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused(bad: float) -> None:
    for form in ([0.6, bad, 0.8], encoded([0.6, bad, 0.8])):
        with pytest.raises(Unavailable, match="not finite"):
            vectors_in(answer(form), 1)


@pytest.mark.parametrize("form", [[0.0, 0.0], [1e-13, 0.0], [1e300, 0.0], encoded([0.0, 0.0]), [], ""])
def test_what_points_nowhere_is_refused(form: Any) -> None:
    with pytest.raises(Unavailable, match="zero or not finite"):
        vectors_in(answer(ONE, form), 2)


@pytest.mark.parametrize("form", [None, 7, {"a": 1}, ["many", "words"], [None], "abcde", encoded(ONE)[:-2], [[1.0]]])
def test_what_is_no_vector_cannot_be_read(form: Any) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)):
        vectors_in(answer(form), 1)


@pytest.mark.parametrize("indexes", [[0], [0, 0], [0, 2], [0, 1, 2], [0, "1"], [0, None]])
def test_each_index_is_there_once(indexes: list[Any]) -> None:
    data = [{"index": index, "embedding": ONE} for index in indexes]
    with pytest.raises(Unavailable, match="their order is unclear"):
        vectors_in(json.dumps({"data": data}).encode(), 2)
