"""What changed between two texts, word by word."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memories.diff import MOST_PAIRS, Diff, diff
from memories.models import MAX_CONTENT

WORDS = ("tea", "coffee", "likes", "Ann", "not", "7", " ", "  ", "\n", ".", ",", "茶", "好", "é", "🫖")
texts = st.lists(st.sampled_from(WORDS), max_size=60).map("".join) | st.text(max_size=200)


def shown(found: Diff) -> str:
    marks = {"same": "{}", "removed": "[-{}-]", "added": "[+{}+]"}
    return "".join(marks[segment.kind].format(segment.text) for segment in found.segments)


@given(texts, texts)
@settings(max_examples=400)
def test_both_texts_can_be_read_from_it(old: str, new: str) -> None:
    found = diff(old, new)
    assert "".join(segment.text for segment in found.before) == old
    assert "".join(segment.text for segment in found.after) == new


@given(texts, texts)
def test_neighbours_are_of_different_kinds_and_nothing_is_empty(old: str, new: str) -> None:
    kinds = [segment.kind for segment in diff(old, new).segments]
    assert all(a != b for a, b in pairwise(kinds))
    assert ("added", "removed") not in pairwise(kinds)
    assert all(segment.text for segment in diff(old, new).segments)


@given(texts)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert {segment.kind for segment in diff(text, text).segments} <= {"same"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", ""),
        ("", "Tea", "[+Tea+]"),
        ("Tea", "", "[-Tea-]"),
        ("Ann likes tea.", "Ann likes coffee.", "Ann likes [-tea-][+coffee+]."),
        ("Ann likes tea", "Ann likes tea and coffee", "Ann likes tea[+ and coffee+]"),
        ("Ann likes tea.", "Ann does not like tea.", "Ann [-likes-][+does not like+] tea."),
        ("Call at 9:30", "Call at 10:30", "Call at [-9-][+10+]:30"),
        ("她喜欢红茶", "她喜欢绿茶", "她喜欢[-红-][+绿+]茶"),
        ("मीना आई", "मोना आई", "[-मीना-][+मोना+] आई"),
        ("one two", "three four", "[-one two-][+three four+]"),
    ],
)
def test_words(old: str, new: str, expected: str) -> None:
    assert shown(diff(old, new)) == expected


def test_long_texts_are_compared_by_sentences_first() -> None:
    sentences = [f"Guest number {n} ordered {n * 7} cups of tea." for n in range(600)]
    changed = [*sentences[:300], "Guest number 300 ordered nothing.", *sentences[301:]]
    found = diff(" ".join(sentences), " ".join(changed))
    assert [s.text for s in found.segments if s.kind == "added"] == ["nothing"]


@pytest.mark.parametrize("unit", ["a ", "a. ", "ab\n", "茶", "x y z. "])
def test_the_longest_texts_are_compared_in_bounded_work(unit: str) -> None:
    old = (unit * MAX_CONTENT)[:MAX_CONTENT]
    new = "".join(reversed(old[: MAX_CONTENT // 2])) + "q" + old[: MAX_CONTENT // 2 - 1]
    found = diff(old, new)
    assert "".join(segment.text for segment in found.before) == old
    assert "".join(segment.text for segment in found.after) == new
    assert len(old) * len(new) > MOST_PAIRS
