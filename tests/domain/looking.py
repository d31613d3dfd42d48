"""Helpers of domain tests: searching, embedding, and work in a second connection."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from django.db import connection, connections, transaction

from instances.models import Instance
from memories.embedding.backfill import embed_pending
from memories.filters import Filters
from memories.models import Embedding, Memory
from memories.search.hybrid import Results, search
from memoryconsole.inputs import read
from tests.factories import scope_of

MODES: list[Any] = ["hybrid", "keyword", "vector"]


def embed(instance: Instance) -> int:
    return embed_pending(scope_of(instance))


def find(instance: Instance, text: str, filters: dict[str, Any] | None = None, **how: Any) -> Results:
    return search(scope_of(instance), text, read(Filters, filters or {}), **how)


def texts(results: Results) -> list[str]:
    return [hit.memory.content for hit in results.hits]


def states(instance: Instance) -> dict[str, int]:
    return Counter(Memory.objects.filter(instance=instance).values_list("embedding", flat=True))


def vectors(instance: Instance) -> int:
    return Embedding.objects.filter(instance=instance).count()


def in_another_connection(work: Any, *arguments: Any) -> Any:
    """Run work in a thread, and close its connection afterwards."""
    try:
        return work(*arguments)
    finally:
        connections.close_all()


def while_writing(write: Callable[[], object], work: Callable[..., object], *arguments: Any) -> Any:
    """Run work in another connection while the writer's transaction is open, and until it has to wait for that."""
    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            write()
            working = thread.submit(in_another_connection, work, *arguments)
            until_somebody_waits()
        return working.result(20)


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


def files(storage: Path) -> list[Path]:
    return [path for path in storage.rglob("*") if path.is_file()]
