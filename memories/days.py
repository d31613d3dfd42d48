"""The last days as the reader's calendar has them, and how many rows of an instance were made on each."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

from memoryconsole.ids import first_id_at

# Ids sort by creation time, so a day is a range of them. The last id only ends the last day.
EACH_DAY = """(
    SELECT n, first, lead(first) OVER (ORDER BY n) AS next
    FROM unnest(%(days)s::uuid[]) WITH ORDINALITY AS start(first, n)
) AS day"""


@dataclass(frozen=True, slots=True)
class Day:
    date: date
    n: int


def last_days(number: int) -> list[date]:
    """Today is the last one."""
    today = timezone.localdate()
    return [today - timedelta(days=ago) for ago in reversed(range(number))]


def midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, timezone.get_current_timezone())


def by_day(statement: str, days: list[date], named: Mapping[str, Any]) -> list[Day]:
    """What a statement counts that takes `days` as ids and answers with the number of a day, from 1, and how many."""
    with connection.cursor() as cursor:
        cursor.execute(statement, {**named, "days": _first_ids(days)})
        counted = dict(cursor.fetchall())
    return [Day(day, counted.get(n, 0)) for n, day in enumerate(days, start=1)]


def _first_ids(days: list[date]) -> list[UUID]:
    return [first_id_at(midnight(day)) for day in [*days, days[-1] + timedelta(days=1)]]
