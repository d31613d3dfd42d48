"""Pages far inside a long list, found from milestones."""

import pytest

from accounts.access import Scope, actor_of_user
from memories import milestones
from memories.filters import Filters
from memories.jobs import mark_milestones
from memories.listing import ORDERS, list_page
from memories.models import Milestone
from memories.paging import Place
from tests.factories import make_instance, make_memories, make_memory, make_user, scope_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def scope(monkeypatch: pytest.MonkeyPatch) -> Scope:
    """Lists count as long from 100 rows on, with a milestone every 10."""
    monkeypatch.setattr(milestones, "STEP", 10)
    monkeypatch.setattr(milestones, "WORTH_MARKING", 100)
    monkeypatch.setattr("memories.jobs.WORTH_MARKING", 100)
    instance = make_instance()
    for importance in (3, 8, 3):
        make_memories(instance, 60, importance=importance, category="fact" if importance == 8 else "event")
    make_memories(make_instance(), 5)
    mark_milestones(timestamp=0)
    return scope_of(instance)


def contents(scope: Scope, order: str, number: int, total: int = 180, **filters: str) -> list[str]:
    page = list_page(scope, Filters(**filters), number=number, size=7, total=total, order=order)
    return [memory.content for memory in page.rows]


@pytest.mark.parametrize("order", sorted(ORDERS))
def test_every_page_is_the_same_with_and_without_them(scope: Scope, order: str) -> None:
    with_them = [contents(scope, order, number) for number in range(1, 27)]
    Milestone.objects.all().delete()
    assert with_them == [contents(scope, order, number) for number in range(1, 27)]


def test_a_category_has_its_own(scope: Scope) -> None:
    find = milestones.milestone_finder(scope, Filters(category="event"), ORDERS["newest"], 120)
    place = find(60)
    assert isinstance(place, Place)
    assert 0 <= place.offset - 60 < 10
    pages = [contents(scope, "newest", number, total=120, category="event") for number in range(1, 19)]
    assert len({content for page in pages for content in page}) == 120


def test_new_memories_move_none_of_them(scope: Scope) -> None:
    make_memory(scope.instance, "brand new")
    after = [contents(scope, "newest", number, total=181) for number in range(1, 27)]
    assert after[0][0] == "brand new"
    assert len({content for page in after for content in page}) == 181


def test_a_list_is_marked_again_only_when_its_length_changed(scope: Scope) -> None:
    first = set(Milestone.objects.values_list("id", flat=True))
    mark_milestones(timestamp=0)
    assert set(Milestone.objects.values_list("id", flat=True)) == first
    make_memory(scope.instance)
    mark_milestones(timestamp=0)
    assert first.isdisjoint(Milestone.objects.values_list("id", flat=True))
    assert Milestone.objects.exclude(instance=scope.instance).count() == 0


def test_a_reader_misses_nothing_beside_private_memories_of_others(scope: Scope) -> None:
    for _ in range(4):
        make_memories(scope.instance, 15, visibility="private", owner="bob")
        make_memories(scope.instance, 15)
    mark_milestones(timestamp=0)
    reader = scope_of(scope.instance, actor_of_user(make_user("alice", scope.instance)))
    pages = [contents(reader, "newest", number, total=240) for number in range(1, 36)]
    assert len({content for page in pages for content in page}) == 240


def test_other_filters_and_short_lists_have_none(scope: Scope) -> None:
    assert milestones.milestone_finder(scope, Filters(pinned=True), ORDERS["newest"], 180)(90) is None
    assert milestones.milestone_finder(scope, Filters(), ORDERS["newest"], 99)(50) is None
