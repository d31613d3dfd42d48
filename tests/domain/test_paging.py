"""Every way to a page shows the same rows, for any order, size and anchor."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from instances.models import Instance
from memories.filters import Filters
from memories.listing import ORDERS, count, list_from, list_page
from memories.models import Memory
from memories.paging import Page
from memoryconsole.errors import Invalid
from tests.factories import make_instance, make_memories, scope_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def instance() -> Instance:
    instance = make_instance()
    for importance in (3, 9, 3, 7):
        make_memories(instance, 19, importance=importance)
    return instance


def page(instance: Instance, order: str, number: int, size: int, anchor: str = "") -> Page[Memory]:
    return list_page(scope_of(instance), Filters(), number=number, size=size, total=76, order=order, anchor=anchor)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(ORDERS)), st.integers(1, 30), st.integers(1, 80), st.integers(1, 80))
def test_a_page_reached_from_any_other_is_the_same(
    instance: Instance, order: str, size: int, here: int, there: int
) -> None:
    everything = [row.id for row in page(instance, order, 1, 100).rows]
    start = page(instance, order, here, size)
    reached = page(instance, order, there, size, anchor=start.anchor)
    assert 1 <= reached.number <= reached.last
    first = (reached.number - 1) * size
    assert [row.id for row in reached.rows] == everything[first : first + size]
    assert (reached.start, reached.end) == (first + 1, first + len(reached.rows))


def test_an_anchor_that_makes_no_sense_is_ignored(instance: Instance) -> None:
    expected = [row.id for row in page(instance, "newest", 3, 10).rows]
    for anchor in ("x", "1~2", "1~not-an-id", "9~9~9", "~", "1~00000000-0000-0000-0000-00000000000g"):
        assert [row.id for row in page(instance, "newest", 3, 10, anchor).rows] == expected


def test_cursors_visit_every_memory_once(instance: Instance) -> None:
    seen, cursor = [], ""
    while True:
        listing = list_from(scope_of(instance), Filters(), limit=7, cursor=cursor)
        seen += [memory.id for memory in listing.memories]
        if listing.next_cursor is None:
            break
        cursor = listing.next_cursor
    assert len(seen) == 76
    assert seen == sorted(seen, reverse=True)


def test_a_cursor_survives_deletions_and_additions(instance: Instance) -> None:
    first = list_from(scope_of(instance), Filters(), limit=10)
    Memory.objects.filter(instance=instance, id=first.memories[-1].id).delete()
    make_memories(instance, 5)
    second = list_from(scope_of(instance), Filters(), limit=10, cursor=first.next_cursor or "")
    assert second.memories[0].id < first.memories[-1].id
    assert {memory.id for memory in first.memories}.isdisjoint(memory.id for memory in second.memories)


def test_a_cursor_that_was_tampered_with_is_refused(instance: Instance) -> None:
    cursor = list_from(scope_of(instance), Filters(), limit=1).next_cursor or ""
    for bad in (cursor[:-1] + ("A" if cursor[-1] != "A" else "B"), cursor[1:], "x", "a:b:c"):
        with pytest.raises(Invalid, match="cursor"):
            list_from(scope_of(instance), Filters(), limit=1, cursor=bad)


def test_page_numbers_show_the_ends_and_the_neighbours() -> None:
    page = Page([], 10, 10, 1000, ORDERS["newest"])
    assert page.numbers == [1, None, 8, 9, 10, 11, 12, None, 100]
    assert Page([], 1, 10, 0, ORDERS["newest"]).numbers == [1]


def test_counting_by_rows_and_by_counters_agree(instance: Instance) -> None:
    scope = scope_of(instance)
    assert count(scope, Filters()).all == count(scope, Filters(min_importance=1)).all == 76
