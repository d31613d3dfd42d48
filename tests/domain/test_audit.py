"""Every write leaves an entry in the audit log, and so does a superadmin who reads somebody's private memory."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.access import Scope, actor_of_user
from instances.models import Instance
from memories.audit import ONE_LOOK
from memories.changing_many import change_many
from memories.deletion import delete_matching, delete_memories, delete_memory, purge_expired
from memories.draft import MemoryChanges, MemoryDraft
from memories.embedding.backfill import embed_pending
from memories.filters import Filters
from memories.listing import list_from
from memories.models import AuditEntry, Memory
from memories.search.similar import similar
from memories.store import change, find_memory, restore, save, save_many
from memoryconsole.ids import uuid7_at
from tests.factories import make_instance, make_memories, make_memory, make_user, scope_of

pytestmark = pytest.mark.django_db


def lines(instance: Instance) -> list[tuple[str, list[Any], dict[str, Any]]]:
    rows = AuditEntry.objects.filter(instance=instance).order_by("id")
    return [(row.action, row.memory_ids, row.detail) for row in rows]


def make(instance: Instance) -> Memory:
    memory = make_memory(instance, "Tea", key="drink")
    change(scope_of(instance), memory.id, MemoryChanges(content="Coffee"))
    AuditEntry.objects.all().delete()
    return memory


WRITES: dict[str, tuple[Callable[[Scope, Memory], object], list[str]]] = {
    "save": (lambda scope, memory: save(scope, MemoryDraft(content="Milk")), ["created"]),
    "save in bulk": (lambda scope, memory: save_many(scope, [MemoryDraft(content="x")] * 3), ["created"]),
    "save under a taken key": (
        lambda scope, memory: save(scope, MemoryDraft(content="Milk", key="drink")),
        ["changed"],
    ),
    "supersede": (
        lambda scope, memory: save(scope, MemoryDraft(content="Milk", key="drink", dedupe="create")),
        ["created", "superseded"],
    ),
    "change": (lambda scope, memory: change(scope, memory.id, MemoryChanges(pinned=True)), ["changed"]),
    "change to the same": (lambda scope, memory: change(scope, memory.id, MemoryChanges(content="Coffee")), []),
    "change in bulk": (lambda scope, memory: change_many(scope, [memory.id], {"importance": 9}), ["changed"]),
    "restore": (lambda scope, memory: restore(scope, memory.id, 1), ["restored"]),
    "delete": (lambda scope, memory: delete_memory(scope, memory.id), ["deleted"]),
    "delete in bulk": (lambda scope, memory: delete_memories(scope, [memory.id]), ["deleted"]),
    "delete what matches": (lambda scope, memory: delete_matching(scope, Filters(), expected=1), ["deleted"]),
    "delete nothing": (lambda scope, memory: delete_matching(scope, Filters(pinned=True), expected=0), []),
}


@pytest.mark.parametrize("name", WRITES)
def test_every_write_is_in_the_log(name: str) -> None:
    instance = make_instance()
    memory = make(instance)
    write, actions = WRITES[name]
    write(scope_of(instance), memory)
    assert [action for action, _, _ in lines(instance)] == actions
    for _, ids, _ in lines(instance):
        assert ids
    stored = str(list(AuditEntry.objects.values()))
    assert not [word for word in ("Tea", "Coffee", "Milk", "drink") if word in stored]


def test_what_is_purged_is_in_the_log() -> None:
    instance = make_instance()
    memory = make_memory(instance, expiresAt=(timezone.now() - timedelta(seconds=1)).isoformat())
    AuditEntry.objects.all().delete()
    purge_expired(scope_of(instance))
    purge_expired(scope_of(instance))
    assert lines(instance) == [("expired", [memory.id], {})]


@pytest.fixture
def instance() -> Instance:
    return make_instance(embedder="offline")


@pytest.fixture
def secret(instance: Instance) -> Memory:
    memory = make_memory(instance, "Bob's secret", visibility="private", owner="bob")
    make_memories(instance, 2)
    AuditEntry.objects.all().delete()
    return memory


def as_user(instance: Instance, name: str, *, superadmin: bool = False) -> Scope:
    user = make_user(name, instance, superadmin=superadmin)
    return scope_of(instance, actor_of_user(user))


def test_a_superadmin_who_opens_a_private_memory_is_noted_once_an_hour(instance: Instance, secret: Memory) -> None:
    scope = as_user(instance, "root", superadmin=True)
    for _ in range(3):
        find_memory(scope, secret.id)
    assert lines(instance) == [("read_private", [secret.id], {})]
    earlier = uuid7_at(timezone.now() - ONE_LOOK - timedelta(seconds=1))
    AuditEntry.objects.filter(instance=instance).update(id=earlier)
    find_memory(scope, secret.id)
    assert len(lines(instance)) == 2


def test_a_list_is_noted_once_for_all_that_it_shows(instance: Instance, secret: Memory) -> None:
    others = make_memories(instance, 5, visibility="private", owner="eve")
    AuditEntry.objects.all().delete()
    scope = as_user(instance, "root", superadmin=True)
    find_memory(scope, secret.id)
    list_from(scope, Filters(), limit=20)
    list_from(scope, Filters(), limit=20)
    (_, first, _), (_, second, _) = lines(instance)
    assert first == [secret.id]
    assert sorted(second) == sorted(memory.id for memory in others)


def test_similar_memories_count_as_shown(instance: Instance, secret: Memory) -> None:
    plain = make_memory(instance, "A secret of nobody")
    embed_pending(scope_of(instance))
    instance.refresh_from_db()
    AuditEntry.objects.all().delete()
    similar(as_user(instance, "root", superadmin=True), plain)
    assert lines(instance) == [("read_private", [secret.id], {})]


def test_nobody_else_is_noted(instance: Instance, secret: Memory) -> None:
    find_memory(as_user(instance, "bob"), secret.id)
    find_memory(scope_of(instance), secret.id)
    list_from(as_user(instance, "eve"), Filters(), limit=20)
    mine = make_memory(instance, visibility="private", owner="root")
    AuditEntry.objects.all().delete()
    find_memory(as_user(instance, "root", superadmin=True), mine.id)
    assert lines(instance) == []


def test_the_log_of_one_instance_says_nothing_of_another(instance: Instance, secret: Memory) -> None:
    other = make_instance()
    scope = as_user(instance, "root", superadmin=True)
    find_memory(scope, secret.id)
    theirs = make_memory(other, visibility="private", owner="bob")
    find_memory(scope_of(other, scope.actor), theirs.id)
    assert [ids for action, ids, _ in lines(other) if action == "read_private"] == [[theirs.id]]
