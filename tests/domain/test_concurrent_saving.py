"""Fifty writers, one key: exactly one active memory, and nothing lost."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from instances.models import Instance
from memories.draft import MemoryDraft
from memories.models import Memory, MemoryVersion
from memories.store import save, save_many
from memoryconsole.errors import Conflict
from tests.factories import scope_of

pytestmark = pytest.mark.django_db(transaction=True)
WRITERS = 50


def save_at_once(bot: Instance, **fields: Any) -> list[str]:
    """Save at the same time from all threads; the event or error code of each."""
    start = Barrier(WRITERS)

    def write(n: int) -> str:
        start.wait(30)
        try:
            return save(scope_of(bot), MemoryDraft(content=f"Text {n}", key="drink", **fields)).event
        except Conflict as conflict:
            return conflict.code
        finally:
            connection.close()

    with ThreadPoolExecutor(WRITERS) as threads:
        return sorted(threads.map(write, range(WRITERS)))


def texts() -> set[str]:
    versions = MemoryVersion.objects.values_list("content", flat=True)
    return {*versions, *Memory.objects.values_list("content", flat=True)}


def test_each_text_becomes_a_version(bot: Instance) -> None:
    assert save_at_once(bot) == ["created"] + ["updated"] * (WRITERS - 1)
    assert Memory.objects.get().status == "active"
    numbers = list(MemoryVersion.objects.order_by("number").values_list("number", flat=True))
    assert numbers == list(range(1, WRITERS))
    assert texts() == {f"Text {n}" for n in range(WRITERS)}


def test_others_are_rejected_cleanly(bot: Instance) -> None:
    assert save_at_once(bot, dedupe="reject") == ["created"] + ["key_taken"] * (WRITERS - 1)
    assert Memory.objects.get().status == "active"
    assert not MemoryVersion.objects.exists()


def test_each_supersedes_the_one_before(bot: Instance) -> None:
    assert save_at_once(bot, dedupe="create") == ["created"] * WRITERS
    assert Memory.objects.filter(status="active").count() == 1
    assert Memory.objects.filter(status="superseded", superseded_by_id__isnull=False).count() == WRITERS - 1
    assert texts() == {f"Text {n}" for n in range(WRITERS)}


def test_the_same_keys_are_stored_in_the_same_order(bot: Instance) -> None:
    """Otherwise each of two lists would lock a key that the other one waits for."""
    drafts = [MemoryDraft(content=f"Text {key}", key=key) for key in "badc"]
    drafts.insert(2, MemoryDraft(content="Text without", owner="ann"))
    stored = save_many(scope_of(bot), drafts)
    assert [saved.memory.content for saved in stored] == [draft.content for draft in drafts]
    with connection.cursor() as cursor:
        cursor.execute("SELECT owner, key FROM memories_memory ORDER BY ctid")
        stored = cursor.fetchall()
    assert stored == [("", "a"), ("", "b"), ("", "c"), ("", "d"), ("ann", "")]
