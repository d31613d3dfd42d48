"""Who did what to which memories, and when: ids, names of fields and counts, never what a memory said."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.utils import timezone

from accounts.access import Scope
from memories.models import AuditEntry


def record(scope: Scope, action: str, memory_ids: Sequence[UUID] = (), **detail: Any) -> None:
    AuditEntry.objects.create(
        instance=scope.instance,
        action=action,
        actor=str(scope.actor)[:200],
        memory_ids=list(memory_ids),
        detail=detail,
        created_at=timezone.now(),
    )
