"""Bounded factors and diversity."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.recall.diversity import choose, jaccard, words_of
from memories.recall.ranking import age_in_days, multipliers, relevance
from memories.recall.selection import is_near, strong_keyword_score
from memories.vocabulary import Role

NOW = datetime(2026, 5, 12, tzinfo=UTC)


def factors(**changes: Any) -> tuple[float, float, float]:
    known: dict[str, Any] = {
        "importance": 5,
        "pinned": False,
        "role": Role.CONTEXT,
        "age_days": 0,
        "half_life_days": 30,
        **changes,
    }
    found = multipliers(**known)
    return found.importance, found.pin, found.recency


def test_importance_pin_and_age() -> None:
    assert factors(importance=1)[0] == 0.9
    assert factors(importance=10)[0] == 1.1
    assert factors(pinned=True)[1] == 1.15
    assert [factors(age_days=days)[2] for days in (0, 30, 60, 36_500)] == [1.0, 0.8, 0.7, 0.6]
    assert factors(age_days=30, half_life_days=60)[2] == pytest.approx(0.8828)


@pytest.mark.parametrize("role", [Role.IDENTITY, Role.LESSON])
def test_identity_and_lessons_do_not_age(role: Role) -> None:
    assert factors(role=role, age_days=10_000)[2] == 1.0


@given(st.integers(1, 10), st.booleans(), st.sampled_from(Role), st.integers(0, 10**6), st.integers(1, 3650))
def test_every_factor_is_bounded(importance: int, pinned: bool, role: Role, age: int, half_life: int) -> None:
    found = multipliers(importance=importance, pinned=pinned, role=role, age_days=age, half_life_days=half_life)
    assert 0.9 <= found.importance <= 1.1
    assert found.pin in (1.0, 1.15)
    assert 0.6 <= found.recency <= 1.0


def test_the_best_hit_stays_among_eight_equals_however_old_it_is() -> None:
    oldest = relevance(1) * 0.6 * 0.9
    assert oldest > relevance(8)


def test_age_counts_in_whole_days_from_the_latest_moment() -> None:
    assert age_in_days(NOW - timedelta(days=9), NOW - timedelta(hours=47), now=NOW) == 1
    assert age_in_days(NOW + timedelta(days=2), now=NOW) == 0


def test_words_in_any_script() -> None:
    assert words_of("Tea, TEA & Milk") == {"tea", "milk"}
    assert words_of("我喜欢") == {"我喜", "喜欢"}
    assert jaccard(words_of("a b c"), words_of("b c d")) == 0.5
    assert jaccard(frozenset(), frozenset()) == 0.0


WORDS = [words_of(text) for text in ("green tea", "green tea", "black coffee")]


def test_what_was_said_already_counts_less() -> None:
    assert choose([1.0, 0.9, 0.5], WORDS, limit=2, balance=1.0) == [0, 1]
    assert choose([1.0, 0.9, 0.5], WORDS, limit=2, balance=0.3) == [0, 2]
    assert choose([1.0, 0.9, 0.5], WORDS, limit=9, balance=0.3) == [0, 2, 1]
    assert choose([], [], limit=3, balance=0.5) == []
    assert choose([1.0, 1.0], WORDS[:2], limit=2, balance=0.0) == [0, 1]


@given(st.lists(st.floats(0, 1), max_size=20), st.integers(1, 10), st.floats(0, 1))
def test_each_at_most_once_and_the_best_first(scores: list[float], limit: int, balance: float) -> None:
    words = [frozenset(str(n % 3)) for n in range(len(scores))]
    chosen = choose(scores, words, limit=limit, balance=balance)
    assert len(chosen) == len(set(chosen)) == min(limit, len(scores))
    if chosen:
        assert balance * scores[chosen[0]] == balance * max(scores)


@pytest.mark.parametrize(
    ("similarity", "keyword_score", "near"),
    [
        (0.3, None, True),
        (0.29, None, False),
        (0.1, 5.0, True),
        (0.1, 1.0, False),
        (None, 0.1, True),
        (None, None, False),
    ],
)
def test_near_by_meaning_or_by_rare_words(similarity: float | None, keyword_score: float | None, near: bool) -> None:
    strong = strong_keyword_score(10_000)
    assert 4 < strong < 5
    assert is_near(similarity, keyword_score, lowest=0.3, strong=strong) is near
