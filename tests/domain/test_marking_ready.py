"""Ready means that what a memory says now has its vectors, whoever writes meanwhile."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction

from instances.models import Instance
from memories.draft import MemoryChanges
from memories.embedding.storing import mark_ready
from memories.models import Memory
from memories.store import change
from tests.domain.looking import embed, in_another_connection, states, vectors
from tests.factories import make_memories, scope_of

pytestmark = pytest.mark.django_db(transaction=True)


def embedded_but_not_marked(instance: Instance, number: int = 1) -> list[Memory]:
    """As the worker leaves them between storing their vectors and marking them."""
    memories = make_memories(instance, number)
    embed(instance)
    Memory.objects.update(embedding="pending")
    return memories


def while_writing(write: Callable[[], object], work: Callable[..., object], *arguments: Any) -> None:
    """Another connection does its work while the transaction of the writer is open, and waits for it to end."""
    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            write()
            working = thread.submit(in_another_connection, work, *arguments)
            until_somebody_waits()
        working.result(20)


def until_somebody_waits() -> None:
    end = monotonic() + 20
    with connection.cursor() as cursor:
        while monotonic() < end:
            cursor.execute(
                "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY("
                "pg_blocking_pids(pid)))"
            )
            if cursor.fetchone()[0]:
                return
            sleep(0.01)
    raise AssertionError("nobody waits for this transaction")


def only(memories: list[Memory]) -> set[UUID]:
    return {memory.id for memory in memories}


@pytest.mark.parametrize("marked", [only, lambda memories: None], ids=["a batch", "all"])
def test_what_changes_while_it_is_marked_stays_pending(hashed: Instance, marked: Any) -> None:
    memories = embedded_but_not_marked(hashed, 3)

    def write() -> None:
        change(scope_of(hashed), memories[1].id, MemoryChanges(content="Something else now"))

    while_writing(write, mark_ready, hashed, hashed.embedding_generation, marked(memories))
    assert states(hashed) == {"ready": 2, "pending": 1}
    assert Memory.objects.get(embedding="pending").id == memories[1].id
    embed(hashed)
    assert (states(hashed), vectors(hashed)) == ({"ready": 3}, 4)
