"""Duplicates: grouping pairs, and deciding about them."""

from itertools import combinations
from uuid import UUID

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounts.access import Scope, actor_of_user, open_instance
from instances.models import Instance
from memories.models import DuplicatePair, Memory
from memories.review import duplicates, inbox
from memories.review.duplicates import group_by_oldest
from memoryconsole.errors import NotFound
from tests.factories import make_instance, make_memory, make_pair, make_user, make_waiting, scope_of

numbers = st.integers(0, 12)
pairs_of_numbers = st.sets(st.tuples(numbers, numbers).filter(lambda pair: pair[0] < pair[1]), max_size=40)


def pair(first: int, second: int, cosine: float = 0.95) -> DuplicatePair:
    return DuplicatePair(first_id=UUID(int=first), second_id=UUID(int=second), cosine=cosine, found_at=timezone.now())


@given(pairs_of_numbers)
def test_each_memory_stands_in_one_group_with_an_older_one_it_is_like(found: set[tuple[int, int]]) -> None:
    groups = group_by_oldest([pair(*each) for each in found])
    members = [id for group in groups for id in (group[0].first_id, *(each.second_id for each in group))]
    assert len(members) == len(set(members))
    assert all(each.first_id == group[0].first_id for group in groups for each in group)
    assert bool(groups) == bool(found)


@given(pairs_of_numbers)
def test_deciding_about_groups_ends(found: set[tuple[int, int]]) -> None:
    left = [pair(*each) for each in found]
    for _ in range(len(found) + 1):
        shown = [each for group in group_by_oldest(left) for each in group]
        left = [each for each in left if each not in shown]
    assert left == []


def test_the_nearest_group_comes_first() -> None:
    groups = group_by_oldest([pair(1, 2, 0.91), pair(3, 4, 0.99), pair(1, 5, 0.93)])
    assert [[each.cosine for each in group] for group in groups] == [[0.99], [0.93, 0.91]]


@pytest.fixture
def three(bot: Instance) -> list[Memory]:
    memories = [make_memory(bot, text) for text in ("Ann likes tea", "Ann likes tea a lot", "Ann likes 2 teas")]
    for first, second in combinations(memories, 2):
        make_pair(first, second, "conflict" if second is memories[2] else "duplicate")
    return memories


def test_clusters(scope: Scope, three: list[Memory]) -> None:
    (cluster,) = duplicates.clusters(scope, duplicates.groups_of_pairs(scope))
    assert cluster.older == three[0]
    assert [(each.memory, each.is_conflict) for each in cluster.others] == [(three[1], False), (three[2], True)]
    assert cluster.others[1].differing == "numbers or dates"
    (conflicts,) = duplicates.clusters(scope, duplicates.groups_of_pairs(scope, "conflict"))
    assert [each.memory for each in conflicts.others] == [three[2]]


def test_merging_supersedes_the_newer_one(scope: Scope, three: list[Memory]) -> None:
    wanted = DuplicatePair.objects.get(first_id=three[0].id, second_id=three[1].id)
    merged = duplicates.merge_pair(scope, wanted.id, "Ann loves tea")
    assert (merged.id, merged.content) == (three[0].id, "Ann loves tea")
    three[1].refresh_from_db()
    assert (three[1].status, three[1].superseded_by_id) == ("superseded", three[0].id)
    assert [each.memory for each in duplicates.part_of_pairs(scope, None, limit=9)[0]] == [three[2]]
    with pytest.raises(NotFound, match="decided about it"):
        duplicates.merge_pair(scope, wanted.id)


def test_many_duplicates_are_merged_and_conflicts_are_left(scope: Scope, three: list[Memory]) -> None:
    ids = list(DuplicatePair.objects.values_list("id", flat=True))
    assert duplicates.merge_many(scope, ids) == (1, 2)
    assert Memory.objects.get(id=three[0].id).content == "Ann likes tea"
    assert Memory.objects.filter(listed=True).count() == 2


def test_keeping_both_is_remembered(scope: Scope, three: list[Memory]) -> None:
    ids = list(DuplicatePair.objects.values_list("id", flat=True))
    assert duplicates.keep_both(scope, ids) == 3
    assert duplicates.keep_both(scope, ids) == 0
    assert duplicates.groups_of_pairs(scope) == []
    assert Memory.objects.filter(listed=True).count() == 3


def test_keeping_both_in_review_is_remembered_too(bot: Instance, scope: Scope) -> None:
    known = make_memory(bot, "The demo is on Monday")
    waiting = make_waiting(bot, "The demo is on Tuesday", known)
    inbox.keep_both(scope, waiting.id)
    kept = DuplicatePair.objects.get()
    assert (kept.first_id, kept.second_id, kept.state) == (known.id, waiting.id, "dismissed")


def test_pairs_of_private_memories_are_their_owners(bot: Instance, scope: Scope) -> None:
    hers = [make_memory(bot, "Ann's secret", owner="ann", visibility="private") for _ in range(2)]
    made = make_pair(*hers)
    ann = open_instance(actor_of_user(make_user("ann", bot)), "support-bot")
    bob = open_instance(actor_of_user(make_user("bob", bot)), "support-bot")
    assert duplicates.open_pairs(ann).count() == 1
    assert duplicates.open_pairs(bob).count() == 0
    assert duplicates.keep_both(bob, [made.id]) == 0
    with pytest.raises(NotFound):
        duplicates.merge_pair(bob, made.id)


def test_two_instances(scope: Scope, three: list[Memory]) -> None:
    sales = scope_of(make_instance("sales-bot"))
    ids = list(DuplicatePair.objects.values_list("id", flat=True))
    assert duplicates.groups_of_pairs(sales) == []
    assert duplicates.keep_both(sales, ids) == 0
    assert duplicates.merge_many(sales, ids) == (0, 3)
    assert duplicates.open_pairs(scope).count() == 3
