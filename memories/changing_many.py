"""Applying one change to many memories with a few statements."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from accounts.access import Scope
from memories import audit, indexing, versions
from memories.inserting import array_literal
from memories.models import MAX_TAGS, Memory
from memories.store import locked
from memories.versions import Cause
from memoryconsole.errors import Invalid
from memoryconsole.scrub import scrub_all

BATCH = 500
# Fields that are not part of the searchable text, so no chunk has to be made anew.
SET_AT_ONCE = frozenset({"category", "role", "importance", "pinned"})


def change_many(
    scope: Scope,
    ids: Sequence[UUID],
    fields: dict[str, Any],
    *,
    add_tags: Sequence[str] = (),
    remove_tags: Sequence[str] = (),
) -> int:
    """Apply one change to all of these memories or to none; return how many were different before."""
    scope.require_write()
    add_tags = scrub_all([*add_tags])[0]
    changed: list[UUID] = []
    in_order = sorted(set(ids))
    with transaction.atomic():
        for start in range(0, len(in_order), BATCH):
            memories = list(locked(scope, in_order[start : start + BATCH]))
            done = [*_set_all(scope, memories, fields), *_tag_all(scope, memories, add_tags, remove_tags)]
            changed += dict.fromkeys(done)
        if changed:
            names = sorted(fields) + (["tags"] if add_tags or remove_tags else [])
            audit.record(scope, "changed", changed, fields=names)
    return len(changed)


def _set_all(scope: Scope, memories: Sequence[Memory], fields: dict[str, Any]) -> list[UUID]:
    """Set the fields of those that differ; their ids."""
    assert fields.keys() <= SET_AT_ONCE
    differing = [memory for memory in memories if any(getattr(memory, name) != fields[name] for name in fields)]
    if not differing:
        return []
    ids = [memory.id for memory in differing]
    if not versions.VERSIONED.isdisjoint(fields):
        versions.keep_many(scope, differing, Cause("bulk change"))
    Memory.objects.filter(instance=scope.instance, id__in=ids).update(**fields, updated_at=timezone.now())
    return ids


def _tag_all(scope: Scope, memories: Sequence[Memory], add: Sequence[str], remove: Sequence[str]) -> list[UUID]:
    """Change the tags of those that differ; their ids. Tags are searchable, so chunks change too. Leaves no version."""
    differing = []
    for memory in memories:
        tags = _tagged(memory, add, remove)
        if tags != memory.tags:
            memory.tags = tags
            differing.append(memory)
    if not differing:
        return []
    ids = [memory.id for memory in differing]
    parameters: dict[str, Any] = {
        "instance": scope.instance.id,
        "now": timezone.now(),
        "ids": ids,
        "tags": [array_literal(memory.tags) for memory in differing],
    }
    with connection.cursor() as cursor:
        cursor.execute(SET_TAGS, parameters)
    indexing.update_descriptions(scope, differing)
    return ids


# Each memory's tags as text, because the inner arrays of an array of arrays must all have the same length.
SET_TAGS = """
UPDATE memories_memory m SET tags = new.tags::character varying[], updated_at = %(now)s
FROM unnest(%(ids)s::uuid[], %(tags)s::text[]) AS new (id, tags)
WHERE m.instance_id = %(instance)s AND m.id = new.id
"""


def _tagged(memory: Memory, add: Sequence[str], remove: Sequence[str]) -> list[str]:
    tags = [tag for tag in memory.tags if tag not in remove]
    tags += [tag for tag in add if tag not in tags]
    if len(tags) > max(MAX_TAGS, len(memory.tags)):
        raise Invalid({"tag": [f"A memory has at most {MAX_TAGS} tags, and one of these has as many."]})
    return tags
