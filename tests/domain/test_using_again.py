"""Making a superseded memory active again: with everything it had, but without its key if that is taken."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.access import Scope
from instances.models import Instance
from memories.draft import MemoryChanges
from memories.filters import Filters
from memories.listing import count
from memories.models import AuditEntry, Chunk, Embedding, Memory, MemoryVersion
from memories.review.merging import merge
from memories.store import change, restore
from memoryconsole.errors import Invalid, NotFound
from tests.domain.looking import MODES, embed, find, texts
from tests.factories import make_instance, make_memory, make_waiting, scope_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def bot() -> Instance:
    return make_instance("support-bot", embedder="offline")


def superseded(bot: Instance) -> Memory:
    """A memory with a version that was superseded by a merge."""
    kept, other = make_memory(bot, "Honey is sweet"), make_memory(bot, "Bears are brown")
    embed(bot)
    change(scope_of(bot), other.id, MemoryChanges(content="Bears sleep all winter"))
    embed(bot)
    bot.refresh_from_db()
    merge(scope_of(bot), kept.id, other.id, "Honey is sweet")
    other.refresh_from_db()
    assert (other.status, texts(find(bot, "bears", mode="keyword"))) == ("superseded", [])
    return other


def test_it_is_as_it_was(bot: Instance, scope: Scope) -> None:
    memory = superseded(bot)
    restore(scope, memory.id)
    memory.refresh_from_db()
    assert (memory.status, memory.superseded_by_id, memory.supersede_reason) == ("active", None, "")
    assert (memory.content, memory.embedding, memory.listed) == ("Bears sleep all winter", "ready", True)
    assert count(scope, Filters()).all == 2
    assert MemoryVersion.objects.filter(memory_id=memory.id).count() == 1
    entry = AuditEntry.objects.latest("id")
    assert (entry.action, entry.memory_ids) == ("used_again", [memory.id])


@pytest.mark.parametrize("mode", MODES)
def test_it_is_found_again_but_not_what_it_said_before(bot: Instance, scope: Scope, mode: str) -> None:
    memory = superseded(bot)
    restore(scope, memory.id)
    assert "Bears sleep all winter" in texts(find(bot, "bears winter", mode=mode))
    for rows in (Chunk.objects.filter(memory_id=memory.id), Embedding.objects.filter(memory_id=memory.id)):
        assert sorted(rows.values_list("live", flat=True)) == [False, True]


def test_a_vector_that_was_never_made_is_made_now(bot: Instance, scope: Scope) -> None:
    memory = superseded(bot)
    change(scope, memory.id, MemoryChanges(content="Bears eat honey"))
    embed(bot)
    restore(scope, memory.id)
    memory.refresh_from_db()
    assert memory.embedding == "pending"
    embed(bot)
    assert "Bears eat honey" in texts(find(bot, "bears eat", mode="vector"))


def test_with_a_version_it_says_what_that_said(bot: Instance, scope: Scope) -> None:
    memory = superseded(bot)
    restore(scope, memory.id, 1)
    memory.refresh_from_db()
    assert (memory.status, memory.content) == ("active", "Bears are brown")
    assert texts(find(bot, "bears brown", mode="keyword")) == ["Bears are brown"]
    assert list(AuditEntry.objects.order_by("-id").values_list("action", flat=True)[:2]) == ["restored", "used_again"]


def test_with_a_version_there_is_not_it_stays_superseded(bot: Instance, scope: Scope) -> None:
    memory = superseded(bot)
    with pytest.raises(NotFound):
        restore(scope, memory.id, 9)
    memory.refresh_from_db()
    assert memory.status == "superseded"


def test_a_taken_key(bot: Instance, scope: Scope) -> None:
    old = make_memory(bot, "Ann likes tea", key="drink")
    new = make_memory(bot, "Ann likes coffee", key="drink", dedupe="create")
    assert restore(scope, old.id).key == ""
    for memory, key in ((old, ""), (new, "drink")):
        memory.refresh_from_db()
        assert (memory.status, memory.key) == ("active", key)
    assert texts(find(bot, "drink", mode="keyword")) == ["Ann likes coffee"]
    assert AuditEntry.objects.latest("id").detail == {"fields": ["key"]}


def test_a_key_that_a_merge_took_along(bot: Instance, scope: Scope) -> None:
    kept, other = make_memory(bot, "Ann likes tea"), make_memory(bot, "Ann likes green tea", key="drink")
    merge(scope, kept.id, other.id, "Ann likes tea, green tea")
    restore(scope, other.id)
    keys = dict(Memory.objects.filter(status="active").values_list("content", "key"))
    assert keys == {"Ann likes tea, green tea": "drink", "Ann likes green tea": ""}


def test_a_key_of_what_has_expired(bot: Instance, scope: Scope) -> None:
    old = make_memory(bot, "Ann likes tea", key="drink")
    new = make_memory(bot, "Ann likes coffee", key="drink", dedupe="create")
    Memory.objects.filter(pk=new.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert restore(scope, old.id).key == "drink"
    assert texts(find(bot, "drink", mode="keyword")) == ["Ann likes tea"]


def test_a_key_of_another_instance_or_owner(bot: Instance, scope: Scope) -> None:
    old = make_memory(bot, "Ann likes tea", key="drink", owner="ann")
    new = make_memory(bot, "Ann likes coffee", key="drink", owner="ann", dedupe="create")
    change(scope, new.id, MemoryChanges(key=""))
    make_memory(bot, "Bob likes beer", key="drink", owner="bob")
    make_memory(make_instance("sales-bot"), "Ann likes rum", key="drink", owner="ann")
    assert restore(scope, old.id).key == "drink"


def test_one_that_waited_waits_again(bot: Instance, scope: Scope) -> None:
    old = make_waiting(bot, "Ann likes tea", key="drink")
    new = make_memory(bot, "Ann likes coffee", key="drink", dedupe="create")
    change(scope, new.id, MemoryChanges(key=""))
    restore(scope, old.id)
    old.refresh_from_db()
    assert (old.status, old.review, old.listed) == ("active", "pending", False)


def test_one_in_use(bot: Instance, scope: Scope) -> None:
    with pytest.raises(Invalid):
        restore(scope, make_memory(bot, "Ann likes tea").id)


def test_two_instances(bot: Instance) -> None:
    memory = superseded(bot)
    with pytest.raises(NotFound):
        restore(scope_of(make_instance("sales-bot")), memory.id)
    memory.refresh_from_db()
    assert memory.status == "superseded"
