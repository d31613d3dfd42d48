"""The review inbox: approving, merging and rejecting."""

import pytest
from django.db.models import Sum

from accounts.access import Scope, actor_of_user, open_instance
from instances.models import Instance
from memories.deletion import Receipt
from memories.draft import MemoryChanges
from memories.embedding.backfill import embed_pending
from memories.filters import Filters
from memories.listing import count, list_from
from memories.models import AuditEntry, Chunk, Memory, MemoryCount, MemoryVersion
from memories.review import inbox
from memories.search.hybrid import search
from memories.search.similar import similar
from memoryconsole.errors import Conflict, NotFound
from tests.factories import make_instance, make_memory, make_user, make_waiting, scope_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def bot() -> Instance:
    return make_instance("support-bot", embedder="offline")


def found(scope: Scope, text: str) -> list[str]:
    return [hit.memory.content for hit in search(scope, text, Filters()).hits]


def test_what_waits_is_nowhere_but_in_the_inbox(bot: Instance, scope: Scope) -> None:
    known = make_memory(bot, "Ann drinks green tea every morning")
    memory = make_waiting(bot, "Ann drinks black coffee every morning")
    embed_pending(scope)
    assert [each.id for each in inbox.waiting(scope)] == [memory.id]
    assert found(scope, "what does Ann drink in the morning") == [known.content]
    assert list_from(scope, Filters(), limit=10).memories == [known]
    assert count(scope, Filters()).all == 1
    known.refresh_from_db()
    assert similar(scope, known) == []


def test_approving_makes_it_findable_at_once(bot: Instance, scope: Scope) -> None:
    memory = make_waiting(bot, "Ann drinks black coffee every morning", category="preference")
    embed_pending(scope)
    approved = inbox.approve(scope, memory.id)
    assert (approved.review, approved.listed, approved.updated_at) == ("approved", True, memory.updated_at)
    assert found(scope, "what does Ann drink") == [memory.content]
    assert search(scope, "coffee", Filters(), mode="vector").hits[0].memory.id == memory.id
    assert count(scope, Filters()).by_category["preference"] == 1
    assert inbox.count_waiting(scope) == 0
    assert AuditEntry.objects.filter(action="approved", memory_ids=[memory.id]).exists()


def test_editing_before_approving_leaves_a_version(bot: Instance, scope: Scope) -> None:
    memory = make_waiting(bot, "Ann drinks cofee", importance=3)
    changes = MemoryChanges(content="Ann drinks coffee", importance=6, supersede_reason="corrected in review")
    approved = inbox.approve(scope, memory.id, changes)
    assert (approved.id, approved.content, approved.importance, approved.listed) == (
        memory.id, "Ann drinks coffee", 6, True,
    )  # fmt: skip
    version = MemoryVersion.objects.get(instance=bot)
    assert (version.content, version.reason) == ("Ann drinks cofee", "corrected in review")
    assert found(scope, "coffee") == ["Ann drinks coffee"]


def test_why_it_waits(bot: Instance, scope: Scope) -> None:
    Instance.objects.filter(id=bot.id).update(auto_approve_importance=5)
    scope = scope_of(bot)
    known = make_memory(bot, "The demo is on Monday at nine")
    conflict = make_waiting(bot, "The demo is on Tuesday at nine", known, importance=8)
    trivial = make_waiting(bot, "The weather was mild", importance=2)
    other = make_waiting(bot, "The demo room has a piano", importance=7)
    embed_pending(scope)
    first, second, third = inbox.with_reasons(scope, [conflict, trivial, other])
    assert (first.reason, first.other) == ("It may contradict another memory: they differ in names.", known)
    assert first.similarity is not None
    assert 0.5 < first.similarity < 1
    assert [s.text for s in first.changes.segments if s.kind != "same"] == ["Monday", "Tuesday"]
    assert second.reason == "Importance 2 is below 5, so it is not approved automatically."
    assert (second.other, second.similarity) == (None, None)
    assert third.reason == "Somebody should look at it before it is used."
    assert set(inbox.waiting(scope, "conflict")) == {conflict}
    assert set(inbox.waiting(scope, "importance")) == {trivial, other}


def test_keeping_both_settles_the_conflict(bot: Instance, scope: Scope) -> None:
    known = make_memory(bot, "The demo is on Monday")
    memory = make_waiting(bot, "The demo is on Tuesday", known)
    kept = inbox.keep_both(scope, memory.id)
    assert (kept.listed, kept.conflicts_with_id) == (True, None)
    assert count(scope, Filters()).all == 2
    with pytest.raises(Conflict, match="contradicts no other"):
        inbox.keep_both(scope, make_waiting(bot, "Alone").id)


def test_merging_changes_the_old_one_and_removes_the_new_one(bot: Instance, scope: Scope) -> None:
    known = make_memory(bot, "The demo is on Monday", importance=4, tags=["demo"])
    memory = make_waiting(bot, "The demo is on Tuesday", known, importance=7, tags=["moved"])
    merged = inbox.merge_waiting(scope, memory.id, "The demo moved from Monday to Tuesday")
    assert (merged.id, merged.content, merged.importance, merged.tags) == (
        known.id, "The demo moved from Monday to Tuesday", 7, ["demo", "moved"],
    )  # fmt: skip
    version = MemoryVersion.objects.get(instance=bot)
    assert (version.memory_id, version.content, version.reason) == (
        known.id, "The demo is on Monday", "merged in review",
    )  # fmt: skip
    assert not Memory.objects.filter(id=memory.id).exists()
    assert not Chunk.objects.filter(memory_id=memory.id).exists()
    assert AuditEntry.objects.filter(action="merged", memory_ids=[known.id, memory.id]).exists()
    assert count(scope, Filters()).all == 1


def test_merging_without_a_text_takes_the_new_one(bot: Instance, scope: Scope) -> None:
    known = make_memory(bot, "The demo is on Monday")
    memory = make_waiting(bot, "The demo is on Tuesday", known)
    assert inbox.merge_waiting(scope, memory.id).content == "The demo is on Tuesday"
    with pytest.raises(Conflict, match="no other memory"):
        inbox.merge_waiting(scope, make_waiting(bot, "Alone").id)


def test_rejecting_deletes_for_good(bot: Instance, scope: Scope) -> None:
    memory, other = make_waiting(bot, "Nonsense"), make_waiting(bot, "Sense")
    assert inbox.reject(scope, [memory.id]) == Receipt(1, 0, 1, 0, 0)
    assert not Memory.objects.filter(id=memory.id).exists()
    assert AuditEntry.objects.filter(action="rejected", memory_ids=[memory.id]).exists()
    assert list(inbox.waiting(scope)) == [other]


def test_only_what_waits_is_decided_about(bot: Instance, scope: Scope) -> None:
    known, first, second = make_memory(bot, "Known"), make_waiting(bot, "First"), make_waiting(bot, "Second")
    assert inbox.approve_many(scope, [known.id, first.id]) == 1
    assert inbox.reject(scope, [known.id, first.id]).deleted == 0
    assert set(Memory.objects.values_list("id", flat=True)) == {known.id, first.id, second.id}
    for decide in (inbox.approve, inbox.keep_both, inbox.merge_waiting):
        with pytest.raises(Conflict, match="reviewed this memory already"):
            decide(scope, known.id)
        with pytest.raises(NotFound):
            decide(scope, "nonsense")


def test_counts_stay_right(bot: Instance, scope: Scope) -> None:
    memories = [make_waiting(bot, f"Fact {n}", category="fact") for n in range(4)]
    assert (MemoryCount.objects.aggregate(n=Sum("delta"))["n"] or 0) == 0
    inbox.approve_many(scope, [memory.id for memory in memories[:3]])
    inbox.reject(scope, [memories[3].id])
    assert MemoryCount.objects.aggregate(n=Sum("delta"))["n"] == 3


def test_other_peoples_private_memories_are_not_shown_nor_decided(bot: Instance) -> None:
    hers = make_waiting(bot, "Ann's secret", visibility="private", owner="ann")
    known = make_memory(bot, "Bob's secret", visibility="private", owner="bob")
    public = make_waiting(bot, "Bob has a secret", known)
    ann = open_instance(actor_of_user(make_user("ann", bot)), "support-bot")
    carl = open_instance(actor_of_user(make_user("carl", bot)), "support-bot")
    assert set(inbox.waiting(ann)) == {hers, public}
    assert set(inbox.waiting(carl)) == {public}
    assert inbox.approve_many(carl, [hers.id]) == 0
    assert inbox.reject(carl, [hers.id]).deleted == 0
    shown = inbox.with_reasons(carl, [public])[0]
    assert (shown.is_conflict, shown.other) == (True, None)
    with pytest.raises(Conflict):
        inbox.merge_waiting(carl, public.id)


def test_two_instances(bot: Instance) -> None:
    memory = make_waiting(bot, "A secret")
    sales = scope_of(make_instance("sales-bot"))
    assert list(inbox.waiting(sales)) == []
    assert inbox.approve_many(sales, [memory.id]) == 0
    assert inbox.reject(sales, [memory.id]).deleted == 0
    with pytest.raises(NotFound):
        inbox.approve(sales, memory.id)
