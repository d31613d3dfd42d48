"""How many memories filters leave is counted once a minute for the same filters."""

from typing import Any

import pytest
from django.db import connection

from instances.models import Instance
from memories.filters import Filters
from memories.search import passing
from memories.search.hybrid import search
from memories.search.passing import count_passing
from tests.domain.conftest import searched_as
from tests.factories import make_instance, make_memory, scope_of

pytestmark = pytest.mark.django_db

TEA = "SELECT id FROM memories_memory WHERE instance_id = %(instance)s AND content = %(text)s"


class Counted:
    """How often the database was asked to count."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, execute: Any, sql: str, *rest: Any) -> Any:
        self.times += "AS first_ones" in sql
        return execute(sql, *rest)


@pytest.fixture(autouse=True)
def nothing_is_known() -> None:
    passing._counts.clear()


def tea(bot: Instance, *, at_most: int = 10, text: str = "tea") -> int:
    return count_passing(TEA, {"instance": bot.id, "text": text, "other": object()}, at_most=at_most)


def test_it_counts_up_to_a_number(bot: Instance) -> None:
    for _ in range(3):
        make_memory(bot, "tea", dedupe="create")
    assert [tea(bot, at_most=n) for n in (10, 3, 2)] == [3, 3, 2]


def test_the_same_is_counted_once(bot: Instance) -> None:
    make_memory(bot, "tea")
    counted = Counted()
    with connection.execute_wrapper(counted):
        assert [tea(bot), tea(bot), tea(bot)] == [1, 1, 1]
        assert counted.times == 1
        assert [tea(bot, text="milk"), tea(make_instance("other-bot"))] == [0, 0]
    assert counted.times == 3, "other filters and other instances have counts of their own"


def test_it_is_counted_again_after_a_minute(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tea(bot) == 0
    make_memory(bot, "tea")
    assert tea(bot) == 0
    later = passing.monotonic() + 61
    monkeypatch.setattr(passing, "monotonic", lambda: later)
    assert tea(bot) == 1


def test_what_was_too_many_stays_too_many_when_the_instance_has_grown(bot: Instance) -> None:
    for _ in range(3):
        make_memory(bot, "tea", dedupe="create")
    assert tea(bot, at_most=2) == 2
    assert tea(bot, at_most=4) == 4


def test_no_more_than_so_many_counts_are_known(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passing, "MOST_COUNTS", 5)
    for n in range(12):
        tea(bot, text=str(n))
    assert len(passing._counts) <= 5


def test_what_is_new_is_found_whatever_was_counted(hashed: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    searched_as("large", monkeypatch)
    make_memory(hashed, "tea at five")
    counted = Counted()
    with connection.execute_wrapper(counted):
        for number in (1, 2, 3):
            found = search(scope_of(hashed), "tea", Filters(category="general"), mode="keyword")
            assert len(found.hits) == number
            make_memory(hashed, f"tea at {number + 5}")
    assert counted.times == 1
