"""When to forget it, in the form of /memory/new and /memory/<id>/edit"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from instances.models import Instance
from memories.draft import MemoryChanges
from memories.models import AuditEntry, Memory
from memories.store import change
from tests.factories import make_memory, scope_of

pytestmark = pytest.mark.django_db
NEW = "/memory/new?instance=support-bot"
FUTURE = datetime(2096, 7, 1, 10, 0, 30, tzinfo=UTC)


def form(**fields: Any) -> dict[str, Any]:
    filled = {"content": "Text", "category": "fact", "importance": "7", "role": "context"}
    return {**filled, "visibility": "instance", "confidence": "1", **fields}


def expiry() -> datetime | None:
    return Memory.objects.get().expires_at


def minutes_from_now(**duration: int) -> tuple[datetime, datetime]:
    now = timezone.now() + timedelta(**duration)
    return now - timedelta(minutes=2), now + timedelta(minutes=2)


@pytest.mark.parametrize(("chosen", "days"), [("1", 1), ("7", 7), ("30", 30)])
def test_a_friendly_choice(alice: Client, support: Instance, chosen: str, days: int) -> None:
    alice.post(NEW, form(expires_in=chosen))
    earliest, latest = minutes_from_now(days=days)
    expires = expiry()
    assert expires
    assert earliest < expires < latest


@pytest.mark.parametrize("fields", [{}, {"expires_in": "never"}, {"expires_in": ""}])
def test_never(alice: Client, support: Instance, fields: dict[str, str]) -> None:
    alice.post(NEW, form(**fields))
    assert expiry() is None


@pytest.mark.parametrize("chosen", ["date", "never", ""])
def test_a_date_that_was_entered_counts(alice: Client, support: Instance, chosen: str) -> None:
    alice.post(NEW, form(expires_in=chosen, expires_at="2096-07-01T10:00"))
    assert expiry() == FUTURE.replace(second=0)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"expires_in": "date"}, "Say on which day"),
        ({"expires_in": "date", "expires_at": "2020-01-01T00:00"}, "This is in the past."),
        ({"expires_in": "date", "expires_at": "soon"}, "Enter a valid date/time."),
        ({"expires_in": "5"}, "5 is not one of the available choices"),
    ],
)
def test_bad_input(alice: Client, support: Instance, fields: dict[str, str], says: str) -> None:
    assert says in alice.post(NEW, form(**fields)).content.decode()
    assert not Memory.objects.exists()


@pytest.fixture
def memory(support: Instance) -> Memory:
    memory = make_memory(support, "Text", category="fact", importance=7)
    return change(scope_of(support), memory.id, MemoryChanges(expires_at=FUTURE))


def edit(client: Client, memory: Memory, **fields: str) -> None:
    response = client.post(f"/memory/{memory.id}/edit?instance=support-bot", form(**fields))
    assert response.status_code == 302


def test_saving_again_moves_no_second(alice: Client, memory: Memory) -> None:
    AuditEntry.objects.all().delete()
    edit(alice, memory, expires_in="date", expires_at="2096-07-01T10:00")
    assert expiry() == FUTURE
    assert not AuditEntry.objects.exists()


def test_never_after_all(alice: Client, memory: Memory) -> None:
    edit(alice, memory, expires_in="never", expires_at="2096-07-01T10:00")
    assert expiry() is None


def test_sooner(alice: Client, memory: Memory) -> None:
    edit(alice, memory, expires_in="1", expires_at="2096-07-01T10:00")
    expires = expiry()
    assert expires
    assert expires < timezone.now() + timedelta(days=2)


def test_another_date(alice: Client, memory: Memory) -> None:
    edit(alice, memory, expires_in="date", expires_at="2097-01-01T00:00")
    assert expiry() == datetime(2097, 1, 1, tzinfo=UTC)
