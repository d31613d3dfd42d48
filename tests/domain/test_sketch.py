"""The sketch of a vector: a sign for each of 1,536 dimensions, or four steps for each of 384."""

import math
from random import Random

import pytest
from django.db import connection

from memoryconsole.postgres.halfvec import HalfVector

pytestmark = pytest.mark.django_db

SHORT, WHOLE = 384, 1536


def sketch(vector: list[float]) -> str:
    """As text, by the function that makes the column and the query's side of the comparison."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT memories_sketch(%s::halfvec(1536))::bit(1536)::text", [HalfVector.of(vector)])
        return str(cursor.fetchone()[0])


def padded(numbers: list[float]) -> list[float]:
    return numbers + [0.0] * (WHOLE - len(numbers))


def unit(random: Random, dimensions: int) -> list[float]:
    drawn = [random.gauss(0, 1) for _ in range(dimensions)]
    length = math.hypot(*drawn)
    return [number / length for number in drawn]


def different(one: str, other: str) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


def test_a_whole_vector_is_its_signs() -> None:
    vector = unit(Random(1), WHOLE)
    assert sketch(vector) == "".join("1" if number > 0 else "0" for number in vector)


def test_a_short_vector_has_four_steps_for_each_dimension() -> None:
    steps = [-0.06, -0.03, 0.0, 0.03, 0.06]
    found = sketch(padded((steps * SHORT)[:SHORT]))
    parts = [found[n : n + SHORT] for n in range(0, WHOLE, SHORT)]
    assert ["".join(part[n] for part in parts) for n in range(5)] == ["0000", "1000", "1100", "1110", "1111"]


def test_no_vector_has_no_sketch() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT memories_sketch(NULL::halfvec)")
        assert cursor.fetchone() == (None,)


def test_short_vectors_are_told_apart_better_than_by_their_signs() -> None:
    """A thousand neighbours of one vector: more of the nearest are the nearest by sketch than by signs."""
    random = Random(2)
    wanted = unit(random, SHORT)
    others = [unit(random, SHORT) for _ in range(1000)]
    rows = [[a + b for a, b in zip(wanted, other, strict=True)] for other in others]
    cosines = [sum(map(lambda a, b: a * b, wanted, row)) / math.hypot(*row) for row in rows]
    nearest = set(sorted(range(1000), key=lambda n: -cosines[n])[:20])
    own, sketches = sketch(padded(wanted)), [sketch(padded(scaled(row))) for row in rows]
    by_sketch = sorted(range(1000), key=lambda n: different(own, sketches[n]))[:100]
    by_signs = sorted(range(1000), key=lambda n: sum(a * b < 0 for a, b in zip(wanted, rows[n], strict=True)))[:100]
    assert len(nearest & set(by_sketch)) > len(nearest & set(by_signs))


def scaled(vector: list[float]) -> list[float]:
    length = math.hypot(*vector)
    return [number / length for number in vector]
