"""What a language model answers is read with suspicion: clamped, left out or refused, and never a crash."""

import json
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.learning.facts import MAX_FACT, Fact, Facts, read_facts, read_summary
from memories.learning.llm import Unreadable
from memories.vocabulary import Category, Role

BERLIN = ZoneInfo("Europe/Berlin")


def fact(**fields: Any) -> dict[str, Any]:
    return {"content": "Alice prefers tea", "category": "preference", "importance": 6, **fields}


def read(*facts: Any, limit: int = 20, is_new: tuple[bool, ...] = (True, True)) -> Facts:
    return read_facts(json.dumps({"memories": facts}), is_new=is_new, zone=BERLIN, limit=limit)


def read_one(**fields: Any) -> Fact:
    (only,) = read(fact(**fields)).kept
    return only


def test_a_fact_as_it_was_asked_for() -> None:
    found = read_one(messageIndex=1, occurredAt="2026-05-12T15:00:00Z", confidence=0.8)
    assert found == Fact(
        "Alice prefers tea", Category.PREFERENCE, 6, Role.CONTEXT, 1, datetime(2026, 5, 12, 15, tzinfo=UTC), 0.8
    )


def test_the_last_three_may_be_missing_or_null() -> None:
    assert read_one() == read_one(messageIndex=None, occurredAt=None, confidence=None)
    assert (read_one().message, read_one().occurred_at, read_one().confidence) == (None, None, 1.0)


@pytest.mark.parametrize(
    ("given", "kept"),
    [(42, 10), (0, 1), (-5, 1), (6.7, 7), ("8", 8), (1e308, 10)],
)
def test_importance_is_clamped(given: object, kept: int) -> None:
    assert read_one(importance=given).importance == kept


@pytest.mark.parametrize(
    ("given", "kept"), [("Decision", "decision"), ("opinion", "general"), ("", "general"), ("skill-note", "general")]
)
def test_an_unknown_category_is_general(given: str, kept: str) -> None:
    assert read_one(category=given).category == kept


def test_a_category_that_is_a_role_too_brings_it_along() -> None:
    assert read_one(category="skill-note").role == Role.LESSON


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2026-05-12", datetime(2026, 5, 11, 22, tzinfo=UTC)),
        ("2026-05-12T09:30:00", datetime(2026, 5, 12, 7, 30, tzinfo=UTC)),
        ("2026-05-12T09:30:00+09:00", datetime(2026, 5, 12, 0, 30, tzinfo=UTC)),
        ("tomorrow", None),
        ("2026-13-45", None),
        ("0001-01-01T00:00:00+14:00", None),
        (20260512, None),
    ],
)
def test_a_time_without_zone_is_the_conversations(given: object, kept: datetime | None) -> None:
    assert read_one(occurredAt=given).occurred_at == kept


@pytest.mark.parametrize("index", [2, -1, "1", True, 1.5, 10**30])
def test_a_message_that_is_not_there_is_no_link(index: object) -> None:
    assert read_one(messageIndex=index).message is None


def test_confidence_is_clamped_or_full() -> None:
    assert [read_one(confidence=given).confidence for given in (7, -1, "0.5", "sure")] == [1.0, 0.0, 0.5, 1.0]


def test_text_is_tidied_scrubbed_and_cut() -> None:
    assert read_one(content="  Alice\n\n likes\ttea \x00").content == "Alice likes tea"
    assert read_one(content="Her key is sk-" + "a1" * 20).content == "Her key is [redacted API key]"
    assert read_one(content="<b>Alice</b>").content == "<b>Alice</b>", "shown as text everywhere"
    assert read_one(content="lone \ud800 surrogate").content == "lone surrogate"
    long = read_one(content="word " * 1000).content
    assert len(long) <= MAX_FACT
    assert long.endswith("word…")
    assert len(read_one(content="x" * 5000).content) <= MAX_FACT


@pytest.mark.parametrize("said", ["爱丽丝住在伯尔尼，喜欢喝茶。", "อลิซอาศัยอยู่ในเมืองเบิร์นและชอบดื่มชา"])
def test_a_long_text_without_spaces_is_cut_and_not_emptied(said: str) -> None:
    fact = read_one(content="Alice: " + said * 100).content
    assert fact == ("Alice: " + said * 100)[: MAX_FACT - 1] + "…"
    assert len(read_summary(json.dumps({"summary": said * 400}), 4_000)) == 4_000


def test_facts_of_old_messages_are_left_out() -> None:
    found = read(fact(messageIndex=0), fact(content="Bob prefers coffee", messageIndex=1), is_new=(False, True))
    assert [each.content for each in found.kept] == ["Bob prefers coffee"]
    assert found.skipped == 1


def test_the_same_fact_twice_is_one() -> None:
    found = read(fact(), fact(content="alice prefers  tea."))
    assert (len(found.kept), found.skipped) == (1, 1)


def test_too_many_facts_are_cut_by_category_then_importance() -> None:
    categories = ["general", "fact", "event", "relationship", "preference", "decision"]
    facts = [
        fact(content=f"{name} {n}", category=name, importance=n % 10 + 1) for name in categories for n in range(84)
    ]
    found = read(*facts[:500], limit=20)
    assert (len(found.kept), found.skipped) == (20, 480)
    assert {each.category for each in found.kept} == {"decision"}
    found = read(*[fact(content=name, category=name) for name in categories], limit=4)
    assert [each.category for each in found.kept] == ["decision", "preference", "relationship", "event"]


def test_a_fact_that_makes_no_sense_does_not_spoil_the_others() -> None:
    found = read(
        fact(),
        {"content": "no category"},
        fact(content=""),
        fact(content="\u200b"),
        fact(importance="very"),
        None,
        7,
        fact(category=3),
    )
    assert (len(found.kept), found.skipped) == (1, 7)


def test_nothing_to_remember() -> None:
    assert read() == Facts([], 0)


@pytest.mark.parametrize(
    "answer",
    ["", "I cannot help", "{", "[]", "7", '{"memories": "none"}', '{"memories": [{"content": "only"}]}', "[" * 100_000],
)
def test_what_cannot_be_read_is_refused(answer: str) -> None:
    with pytest.raises(Unreadable):
        read_facts(answer, is_new=[True], zone=BERLIN, limit=20)


def test_a_fence_around_it_is_forgiven() -> None:
    answer = f"```json\n{json.dumps({'memories': [fact()]})}\n```"
    assert len(read_facts(answer, is_new=[True], zone=BERLIN, limit=20).kept) == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
    max_leaves=8,
)
names = ("content", "category", "importance", "messageIndex", "occurredAt", "confidence")


@given(st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(names, json_values)), max_size=5))
def test_whatever_it_answers_is_read_or_refused(facts: list[Any]) -> None:
    try:
        found = read_facts(json.dumps({"memories": facts}), is_new=[True, False], zone=BERLIN, limit=3)
    except Unreadable:
        return
    assert len(found.kept) <= 3
    assert found.skipped == len(facts) - len(found.kept)
    assert all(1 <= each.importance <= 10 and 0 <= each.confidence <= 1 and each.content for each in found.kept)


def test_a_summary() -> None:
    assert read_summary('{"summary": " Alice moved.\\nTwice. "}', 100) == "Alice moved. Twice."
    for answer in ("{}", '{"summary": 5}', '{"summary": "  "}', "no"):
        with pytest.raises(Unreadable):
            read_summary(answer, 100)
