"""The counters always agree with the number of rows."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.access import actor_of_user
from instances.models import Instance
from instances.store import delete_instance
from memories.changing_many import change_many
from memories.deletion import delete_memories
from memories.draft import MemoryChanges
from memories.filters import Filters, matching
from memories.jobs import fold_counts, purge_all_expired
from memories.listing import count
from memories.models import AuditEntry, Chunk, Memory, MemoryCount
from memories.store import change
from tests.factories import make_instance, make_memories, make_memory, make_user, scope_of

pytestmark = pytest.mark.django_db


def assert_counted(scope) -> None:
    totals = count(scope, Filters())
    for category, n in totals.by_category.items():
        assert n == matching(scope, Filters(category=category)).count(), category


def test_they_follow_every_write() -> None:
    instance, other = make_instance(), make_instance()
    scope = scope_of(instance)
    make_memories(other, 3)
    facts = make_memories(instance, 5, category="fact")
    make_memories(instance, 4, category="event")
    assert_counted(scope)
    change_many(scope, [memory.id for memory in facts[:2]], {"category": "decision"})
    assert_counted(scope)
    delete_memories(scope, [facts[0].id, facts[4].id])
    assert_counted(scope)
    assert count(scope, Filters()).by_category["decision"] == 1
    assert count(scope_of(other), Filters()).all == 3


def test_folding_keeps_the_sums() -> None:
    instance = make_instance()
    for _ in range(5):
        make_memory(instance)
    before = count(scope_of(instance), Filters())
    assert MemoryCount.objects.filter(instance=instance).count() == 5
    fold_counts(timestamp=0)
    assert MemoryCount.objects.filter(instance=instance).count() == 1
    assert count(scope_of(instance), Filters()) == before


def test_a_change_that_moves_nothing_appends_nothing() -> None:
    instance = make_instance()
    memory = make_memory(instance)
    change(scope_of(instance), memory.id, MemoryChanges(content="Something else"))
    assert MemoryCount.objects.filter(instance=instance).count() == 1


def test_what_has_expired_is_not_counted_and_then_purged() -> None:
    instance = make_instance()
    scope = scope_of(instance)
    make_memories(instance, 2)
    gone = make_memory(instance, expiresAt=(timezone.now() + timedelta(hours=1)).isoformat())
    assert count(scope, Filters()).all == 3
    Memory.objects.filter(pk=gone.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert count(scope, Filters()).all == 2
    assert_counted(scope)
    purge_all_expired(timestamp=0)
    assert not Memory.objects.filter(pk=gone.pk).exists()
    assert count(scope, Filters()).all == 2
    entry = AuditEntry.objects.get(instance=instance, action="expired")
    assert (entry.actor, entry.memory_ids) == ("job purge", [gone.id])


def test_other_peoples_private_memories_are_not_counted() -> None:
    instance = make_instance()
    alice = make_user("alice", instance)
    make_memory(instance, visibility="private", owner="alice")
    make_memory(instance, visibility="private", owner="bob")
    make_memory(instance)
    mine = scope_of(instance, actor_of_user(alice))
    assert count(mine, Filters()).all == 2
    assert_counted(mine)
    assert count(scope_of(instance), Filters()).all == 3


def test_deleting_an_instance_takes_its_counters_along() -> None:
    instance, other = make_instance(), make_instance()
    make_memories(instance, 3)
    make_memories(other, 2)
    assert delete_instance(scope_of(instance)) == {"memories": 3, "conversations": 0}
    assert not MemoryCount.objects.filter(instance_id=instance.id).exists()
    assert count(scope_of(other), Filters()).all == 2


def test_a_value_and_a_tag_together_are_one_change(bot: Instance) -> None:
    both, tag_alone = make_memory(bot, category="fact"), make_memory(bot, category="decision")
    ids = [both.id, tag_alone.id]
    assert change_many(scope_of(bot), ids, {"category": "decision"}, add_tags=["vip"]) == 2
    changed = Memory.objects.filter(instance=bot).values_list("category", "tags")
    assert list(changed) == [("decision", ["vip"])] * 2
    assert list(Chunk.objects.values_list("about", flat=True)) == ["vip"] * 2
    assert change_many(scope_of(bot), ids, {"category": "decision"}, add_tags=["vip"]) == 0
