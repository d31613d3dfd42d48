"""The audit log of users, API keys and whole instances."""

from typing import Any

from accounts.access import Actor
from accounts.models import AccountEvent


def record_event(actor: Actor, action: str, subject: str, **detail: Any) -> None:
    AccountEvent.objects.create(actor=str(actor), action=action, subject=subject[:200], detail=detail)
