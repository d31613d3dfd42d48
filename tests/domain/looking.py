"""What tests look for, and at: what search finds, and how far the vectors are."""

from collections import Counter
from typing import Any

from django.db import connections

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
    """For threads."""
    try:
        return work(*arguments)
    finally:
        connections.close_all()
