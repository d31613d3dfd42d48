"""Counting rows per day, in the reader's time zone."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

from memoryconsole.ids import first_id_at

# Ids sort by creation time, so a day is a range of ids. The last id in `days` is only the end of the last day.
EACH_DAY = """(
    SELECT n, first, lead(first) OVER (ORDER BY n) AS next
    FROM unnest(%(days)s::uuid[]) WITH ORDINALITY AS start(first, n)
) AS day"""


@dataclass(frozen=True, slots=True)
class Day:
    date: date
    n: int


def last_days(number: int) -> list[date]:
    """The last days, oldest first, ending with today."""
    today = timezone.localdate()
    return [today - timedelta(days=ago) for ago in reversed(range(number))]


def midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, timezone.get_current_timezone())


def by_day(statement: str, days: list[date], parameters: Mapping[str, Any]) -> list[Day]:
    """Run a statement that takes `days` as ids and returns rows of a day's number, starting at 1, and a count."""
    with connection.cursor() as cursor:
        cursor.execute(statement, {**parameters, "days": _first_ids(days)})
        counted = dict(cursor.fetchall())
    return [Day(day, counted.get(n, 0)) for n, day in enumerate(days, start=1)]


def _first_ids(days: list[date]) -> list[UUID]:
    return [first_id_at(midnight(day)) for day in [*days, days[-1] + timedelta(days=1)]]
