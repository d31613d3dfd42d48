"""The audit log of users, API keys and whole instances."""

from typing import Any

from accounts.access import Actor
from accounts.models import AccountEvent

INSTANCE_DELETED = "instance deleted"


def record_event(actor: Actor, action: str, subject: str, **detail: Any) -> None:
    AccountEvent.objects.create(actor=str(actor), action=action, subject=subject[:200], detail=detail)


def was_deleted(instance_id: str) -> bool:
    """Whether an instance with this id was deleted from this database."""
    return AccountEvent.objects.filter(action=INSTANCE_DELETED, detail__id=instance_id).exists()
