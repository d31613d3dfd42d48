"""Cutting texts: into pieces of about 400 tokens, at paragraphs, with an overlap; and who says it."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from memories.chunking import CAPACITY, OVERLAP, RUN, day_in_words, pieces, speaker, split, undated, word_count

PARAGRAPH = "Alice has moved to Bern and looks after two cats there, both of them old and one of them blind. "


def test_a_short_text_is_one_piece() -> None:
    assert split("Alice likes tea") == ["Alice likes tea"]
    assert split("x" * CAPACITY) == ["x" * CAPACITY]


def test_a_long_text_is_cut_at_paragraphs() -> None:
    paragraphs = [f"{n}. {PARAGRAPH * 6}".strip() for n in range(12)]
    found = split("\n\n".join(paragraphs))
    assert len(found) > 3
    assert all(piece.split(".")[0].isdigit() for piece in found), "each piece begins where a paragraph begins"
    assert all(piece.endswith("blind.") for piece in found)
    assert all(any(paragraph in piece for piece in found) for paragraph in paragraphs)


def test_pieces_are_of_about_400_tokens_and_overlap() -> None:
    sentences = [f"Sentence number {n} says something of its own." for n in range(400)]
    found = split(" ".join(sentences))
    assert all(CAPACITY / 2 < len(piece) <= CAPACITY for piece in found[:-1])
    for one, next_one in pairwise(found):
        shared = max(n for n in range(OVERLAP + 1) if one.endswith(next_one[:n]))
        assert OVERLAP / 2 < shared <= OVERLAP
    assert all(any(sentence in piece for piece in found) for sentence in sentences)


@given(st.text(max_size=200), st.integers(min_value=1, max_value=60))
@settings(max_examples=60, deadline=None)
def test_nothing_is_lost(text: str, times: int) -> None:
    whole = " ".join([text] * times)
    found = split(whole)
    assert all(len(piece) <= CAPACITY for piece in found)
    assert {sign for sign in whole if not sign.isspace()} <= set("".join(found))


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("Alice: I like tea", "Alice"),
        ("[2023-05-08 13:56] Alice: I like tea", "Alice"),
        ("Dr. Ann O'Hara: rest for a week", "Dr. Ann O'Hara"),
        ("José: hola", "José"),
        ("小明: 我喜欢茶", "小明"),
        ("小明：我喜欢茶", "小明"),
        ("[8 May 2023] 小明：我喜欢茶", "小明"),
        ("他昨天告诉了我们这些事情：下雨", ""),
        ("मीना: मुझे चाय पसंद है", "मीना"),
        ("http://example.org says so", ""),
        ("12:30 is lunch", ""),
        ("10 things to know: one", ""),
        ("One two three four: five", ""),
        ("Note:without a space", ""),
        ("No colon at all", ""),
        ("", ""),
    ],
)
def test_who_says_it(content: str, name: str) -> None:
    assert speaker(content) == name


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1:56 pm on 8 May, 2023] Alice: I like tea", "Alice: I like tea"),
        ("[8:30] 小明：我喜欢茶", "小明：我喜欢茶"),
        ("[urgent] Alice: I like tea", "[urgent] Alice: I like tea"),
        ("[8 May 2023] tea was served", "[8 May 2023] tea was served"),
        ("Alice: [8 May] was fine", "Alice: [8 May] was fine"),
    ],
)
def test_when_it_was_said_is_left_out(content: str, said: str) -> None:
    assert undated(content) == said


def test_the_day_is_written_as_questions_ask_for_it() -> None:
    assert day_in_words(datetime(2023, 5, 8, 23, 59, tzinfo=UTC)) == "8 May 2023, Monday"


@pytest.mark.parametrize(
    ("text", "count"),
    [("Alice likes tea", 3), ("", 0), ("我喜欢茶", 3), ("茶", 1), ("ฉันชอบชา", 6), ("tea 我喜欢", 3), ("a-b_c", 3)],
)
def test_words_are_counted_in_every_script(text: str, count: int) -> None:
    assert word_count(text) == count


@pytest.mark.django_db
@given(st.text(alphabet="ab \u4e00\u6211\u559c\u30a2\uac00\u0e01\u0e32\u0e19\u1780", max_size=30))
@settings(max_examples=60, deadline=None)
def test_the_database_cuts_scripts_without_spaces_in_the_same_way(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT memories_pieces(%s)", [text])
        found = set(cursor.fetchone()[0])
    ours = {piece for run in RUN.findall(text) for piece in pieces(run)}
    # The database also keeps the last character of a run of ideographs, for queries of a single one.
    assert ours <= found
    assert all(len(piece) == 1 for piece in found - ours)
