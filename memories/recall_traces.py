"""What the recall log says of memories: removed with them, while the rest of each line stays explainable."""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from accounts.access import Scope
from memories.models import Recall

AT_ONCE = 5_000
NAMES = ("id", "memoryId")


def remove_from_recalls(scope: Scope, memory_ids: Sequence[UUID]) -> int:
    """Take these memories out of every recall that named them; how many recalls that changed."""
    changed = 0
    for start in range(0, len(memory_ids), AT_ONCE):
        part = list(memory_ids[start : start + AT_ONCE])
        rows = Recall.objects.filter(instance=scope.instance)
        naming = sorted(rows.filter(memory_ids__overlap=part).values_list("id", flat=True))
        for id in naming:
            _remove(rows.select_for_update().get(id=id), set(part))
        changed += len(naming)
    return changed


def _remove(recall: Recall, gone: set[UUID]) -> None:
    names = {str(id) for id in gone}
    Recall.objects.filter(pk=recall.pk).update(
        memory_ids=[id for id in recall.memory_ids if id not in gone], explanation=without(recall.explanation, names)
    )


def without(value: Any, ids: Collection[str]) -> Any:
    """JSON without anything under one of these ids: entries named by it, and objects that have it as their id."""
    if isinstance(value, dict):
        return {name: without(part, ids) for name, part in value.items() if name not in ids and not _is(part, ids)}
    if isinstance(value, list):
        return [without(part, ids) for part in value if not _is(part, ids)]
    return value


def _is(part: Any, ids: Collection[str]) -> bool:
    if isinstance(part, dict):
        return any(part.get(name) in ids for name in NAMES)
    return isinstance(part, str) and part in ids
