"""The list of an instance's memories: totals, counts per category and day, pages for people, cursors for programs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Count

from accounts.access import Scope
from memories.audit import note_private_reads
from memories.days import EACH_DAY, Day, by_day
from memories.filters import Filters, matching
from memories.milestones import milestone_finder
from memories.models import Memory
from memories.paging import Order, Page, name_of_list, page_of, part_of_list
from memories.vocabulary import Category

ON_TOP = 10
ORDERS = {
    "newest": Order(("id",)),
    "oldest": Order(("id",), descending=False),
    "importance": Order(("importance", "id")),
}


@dataclass(frozen=True, slots=True)
class Totals:
    """How many memories match all filters but the category, in total and per category."""

    by_category: Mapping[str, int]

    @property
    def all(self) -> int:
        return sum(self.by_category.values())

    def under(self, filters: Filters) -> int:
        return self.by_category.get(filters.category, 0) if filters.category else self.all


@dataclass(frozen=True, slots=True)
class Listing:
    memories: list[Memory]
    total: int
    next_cursor: str | None


def count(scope: Scope, filters: Filters) -> Totals:
    """Read the counters if at most a category is filtered, otherwise count the rows."""
    if filters.narrowing().keys() <= {"category"}:
        return Totals(_counters(scope))
    rows = matching(scope, filters.model_copy(update={"category": None}))
    return Totals(dict(rows.order_by().values_list("category").annotate(Count("id"))))


class Lengths(NamedTuple):
    """About how many memories an instance has, and how many of them are private."""

    all: int
    private: int


def lengths(scope: Scope) -> Lengths:
    """Read from the counters, which still include expired memories until they are purged."""
    with connection.cursor() as cursor:
        cursor.execute(LENGTHS, [scope.instance.id])
        return Lengths(*cursor.fetchone())


LENGTHS = """
SELECT coalesce(sum(delta), 0)::bigint, coalesce(sum(delta) FILTER (WHERE private), 0)::bigint
FROM memories_memorycount WHERE instance_id = %s
"""


def _counters(scope: Scope) -> dict[str, int]:
    owner = scope.private_memories_of
    with connection.cursor() as cursor:
        hidden = OF_OTHERS if owner is not None else ""
        cursor.execute(COUNTED.format(hidden=hidden), {"instance": scope.instance.id, "owner": owner})
        return dict.fromkeys(Category.values, 0) | dict(cursor.fetchall())


EXPIRED = """
    WHERE instance_id = %(instance)s AND listed AND expires_at IS NOT NULL AND expires_at <= statement_timestamp()
"""
PRIVATE_TO_OTHERS = """
    WHERE instance_id = %(instance)s AND listed AND visibility = 'private' AND owner <> %(owner)s
      AND (expires_at IS NULL OR expires_at > statement_timestamp())
"""
# The sum of the counters, less what has expired and is not purged yet, less other people's private memories.
COUNTED = f"""
SELECT category, sum(n)::bigint
FROM (
    SELECT category, delta AS n FROM memories_memorycount WHERE instance_id = %(instance)s
    UNION ALL
    SELECT category, -1 FROM memories_memory {EXPIRED}
    {{hidden}}
) AS counted GROUP BY category
"""
OF_OTHERS = f"""
    UNION ALL
    SELECT category, -1 FROM memories_memory {PRIVATE_TO_OTHERS}
"""


def count_by_day(scope: Scope, days: list[date]) -> list[Day]:
    """How many of the memories that `count` counts were created on each of these consecutive days."""
    owner = scope.private_memories_of
    statement = COUNTED_BY_DAY.format(hidden=OF_OTHERS_BY_DAY if owner is not None else "")
    parameters = {"instance": scope.instance.id, "owner": owner, "categories": Category.values}
    return by_day(statement, days, parameters)


# Listing all categories lets PostgreSQL use the index by category, a day at a time; the rest is subtracted, as above.
IN_THESE_DAYS = "AND id >= (%(days)s::uuid[])[1]"
COUNTED_BY_DAY = f"""
SELECT n, sum(change)::bigint
FROM (
    SELECT n, (
        SELECT count(*) FROM memories_memory
        WHERE instance_id = %(instance)s AND listed AND category = ANY(%(categories)s::varchar[])
          AND id >= day.first AND id < day.next
    ) AS change FROM {EACH_DAY}
    UNION ALL
    SELECT width_bucket(id, %(days)s::uuid[]), -1 FROM memories_memory {EXPIRED} {IN_THESE_DAYS}
    {{hidden}}
) AS counted GROUP BY n
"""
OF_OTHERS_BY_DAY = f"""
    UNION ALL
    SELECT width_bucket(id, %(days)s::uuid[]), -1 FROM memories_memory {PRIVATE_TO_OTHERS} {IN_THESE_DAYS}
"""


def list_page(
    scope: Scope, filters: Filters, *, number: int, size: int, total: int, order: str = "newest", anchor: str = ""
) -> Page[Memory]:
    rows = matching(scope, filters)
    milestone = milestone_finder(scope, filters, ORDERS[order], total)
    page = page_of(rows, ORDERS[order], number=number, size=size, total=total, anchor=anchor, milestone=milestone)
    note_private_reads(scope, page.rows)
    return page


def pinned_on_top(scope: Scope, filters: Filters) -> list[Memory]:
    """The latest pinned memories that match; the first page shows them above the list."""
    found = list(ORDERS["newest"].sorted(matching(scope, filters).filter(pinned=True))[:ON_TOP])
    note_private_reads(scope, found)
    return found


def list_from(scope: Scope, filters: Filters, *, limit: int, offset: int = 0, cursor: str = "") -> Listing:
    """The API's list, newest first: by offset near the beginning, by cursor at any depth."""
    name = name_of_list("memories", scope.instance.id, filters.narrowing())
    rows = matching(scope, filters)
    found, following = part_of_list(rows, ORDERS["newest"], name, limit=limit, offset=offset, cursor=cursor)
    note_private_reads(scope, found)
    return Listing(memories=found, total=count(scope, filters).under(filters), next_cursor=following)


def ids_matching(scope: Scope, filters: Filters) -> list[UUID]:
    return list(ORDERS["newest"].sorted(matching(scope, filters)).values_list("id", flat=True))
