"""The embedder without a key: what letters share, and nothing that could upset a cosine."""

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.embedding.offline import DIMENSIONS, PADDED, embed

ANYTHING = st.text(st.characters(exclude_categories=[]), max_size=300)


def cosine(one: str, other: str) -> float:
    return sum(x * y for x, y in zip(embed(one), embed(other), strict=True))


@given(ANYTHING)
def test_any_text_gives_the_same_unit_vector_every_time(text: str) -> None:
    vector = embed(text)

    assert len(vector) == PADDED
    assert math.hypot(*vector) == pytest.approx(1.0)
    assert vector[DIMENSIONS:] == [0.0] * (PADDED - DIMENSIONS)
    assert embed(text) == vector


@pytest.mark.parametrize("text", ["", "   ", "\n", "!!!", "🎉", "\0", "\ud800", "' \" \\ % _ & | ! ( ) : * <->"])
def test_texts_without_words_have_a_direction_too(text: str) -> None:
    assert math.hypot(*embed(text)) == pytest.approx(1.0)
    assert abs(cosine(text, "Alice drinks tea")) < 0.3


def test_words_whose_hashes_cancel_out_have_a_direction_too() -> None:
    words = [
        first + second for first in "abcdefghijklmnopqrstuvwxyz" for second in "abcdefghijklmnopqrstuvwxyz0123456789"
    ]
    assert all(math.hypot(*embed(word)) == pytest.approx(1.0) for word in words)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("Alice prefers green tea", "Which tea does Alice prefer?", "The server room is on the third floor"),
        ("The invoice is overdue", "overdue invoices", "Bob plays the piano"),
        ("Their anniversary is in May", "aniversary", "quarterly budget"),
        ("Der Kühlschrank ist kaputt", "Kühlschranks", "Wir fahren nach Rom"),
        ("她喜欢喝绿茶", "绿茶", "服务器在三楼"),
        ("ฉันชอบชาเขียว", "ชาเขียว", "ห้องประชุมอยู่ชั้นสาม"),
        ("Caf\u0065\u0301 Central", "CAFÉ CENTRAL", "Bar Peripheral"),
        ("मीना को दिल्ली पसंद है", "दिल्ली", "दाल लाल"),
        ("Order 48213 is late", "48213", "48999"),
    ],
)
def test_texts_that_share_words_or_pieces_are_near(text: str, near: str, far: str) -> None:
    assert cosine(text, near) > cosine(text, far) + 0.1


def test_no_dimension_of_a_short_text_is_left_empty() -> None:
    """One bit is kept of each, so each has to say something."""
    assert sum(1 for x in embed("tea")[:DIMENSIONS] if abs(x) > 1e-9) > DIMENSIONS * 0.6
    assert sum(1 for x in embed("Alice prefers green tea")[:DIMENSIONS] if abs(x) > 1e-9) > DIMENSIONS * 0.9


def test_another_process_computes_the_same() -> None:
    code = "from memories.embedding.offline import embed; print(embed('Grüße, 世界')[:5])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == str(embed("Grüße, 世界")[:5])


def test_a_very_long_text_is_no_trouble() -> None:
    assert math.hypot(*embed("x" * 100_000)) == pytest.approx(1.0)
    assert math.hypot(*embed("word " * 20_000 + "茶" * 10_000)) == pytest.approx(1.0)
