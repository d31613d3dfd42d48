"""Who did what to which memories, and when: ids, names of fields and counts, never what a memory said."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from accounts.access import Scope
from memories.inserting import Rows, insert_one, new_rows
from memories.models import AuditEntry, Memory
from memories.vocabulary import Visibility
from memoryconsole.ids import first_id_at, uuid7
from memoryconsole.reading import filled

READ_PRIVATE = "read_private"
# A superadmin who reads the same private memory again within this time is not recorded again.
ONE_LOOK = timedelta(hours=1)


def record(scope: Scope, action: str, memory_ids: Sequence[UUID] = (), **detail: Any) -> None:
    insert_one(entry(scope, action, memory_ids, **detail))


def entry(scope: Scope, action: str, memory_ids: Sequence[UUID] = (), **detail: Any) -> Rows:
    """The row that `record` writes, for callers that insert it together with other rows."""
    fields = {
        "instance_id": scope.instance.id,
        # Before the id, by which "created after" finds it.
        "created_at": timezone.now(),
        "id": uuid7(),
        "action": action,
        "actor": str(scope.actor),
        "memory_ids": memory_ids,
        "detail": detail,
    }
    return new_rows(AuditEntry, [filled(AuditEntry, fields)])


def note_private_reads(scope: Scope, memories: Iterable[Memory]) -> None:
    """Record that a superadmin is shown other people's private memories, in one entry for all that are new to them.

    API keys and the shell act for the assistant, so their reads are not recorded. No query if nothing is private.
    """
    actor = scope.actor
    if actor.kind != "user" or not actor.is_superadmin:
        return
    private = [m.id for m in memories if m.visibility == Visibility.PRIVATE and m.owner != actor.name]
    if not private:
        return
    seen = _recently_read(scope)
    new = [id for id in dict.fromkeys(private) if id not in seen]
    if new:
        record(scope, READ_PRIVATE, new)


def _recently_read(scope: Scope) -> set[UUID]:
    rows = AuditEntry.objects.filter(
        instance=scope.instance,
        action=READ_PRIVATE,
        actor=str(scope.actor),
        id__gte=first_id_at(timezone.now() - ONE_LOOK),
    )
    return {id for ids in rows.values_list("memory_ids", flat=True) for id in ids}
