"""Milestones: known positions inside long lists, so that a page far inside is found quickly.

They are counted from the oldest memory, so adding memories does not move them. Deleting does: until the job has marked
the list again, a page typed by its number may be off by as many rows as were deleted. Pages linked from there are
exact.
"""

from collections.abc import Callable
from uuid import UUID

from django.db import connection, transaction

from accounts.access import Scope
from memories.filters import Filters
from memories.models import MemoryCount, Milestone
from memories.paging import Order, Place

STEP = 1000
WORTH_MARKING = 20_000
MARKED = "marked"

MARK = """
INSERT INTO memories_milestone (instance_id, id, series, ordinal, importance, memory_id)
SELECT %(instance)s, gen_random_uuid(), {series}, ordinal, importance, id
FROM (
    SELECT id, category, importance, row_number() OVER ({window}) AS ordinal
    FROM memories_memory
    WHERE instance_id = %(instance)s AND listed AND (expires_at IS NULL OR expires_at > now())
) AS numbered
WHERE ordinal %% %(step)s = 0
"""


def mark(scope: Scope, length: int) -> None:
    """Replace all milestones: of the whole list, of each category, and by importance. Also store the list's length."""
    parameters: dict[str, UUID | int] = {"instance": scope.instance.id, "step": STEP}
    with transaction.atomic(), connection.cursor() as cursor:
        Milestone.objects.filter(instance=scope.instance).delete()
        cursor.execute(MARK.format(series="'all'", window="ORDER BY id"), parameters)
        cursor.execute(MARK.format(series="category", window="PARTITION BY category ORDER BY id"), parameters)
        cursor.execute(MARK.format(series="'importance'", window="ORDER BY importance, id"), parameters)
        Milestone.objects.create(
            instance=scope.instance, series=MARKED, ordinal=length, importance=0, memory_id=scope.instance.id
        )


def milestone_finder(scope: Scope, filters: Filters, order: Order, total: int) -> Callable[[int], Place | None]:
    """A function that finds the milestone nearest to an offset, or nothing if this list has no milestones."""
    narrowed = filters.narrowing().keys()
    if total < WORTH_MARKING or not narrowed <= {"category"} or (narrowed and "importance" in order.columns):
        return lambda offset: None
    # Milestones count private memories too, so they do not fit the list of a reader who may not see all of them.
    if scope.private_memories_of is not None and _has_private(scope):
        return lambda offset: None
    series = filters.category or ("importance" if "importance" in order.columns else "all")

    def find(offset: int) -> Place | None:
        from_oldest = total - offset if order.descending else offset + 1
        rows = Milestone.objects.filter(instance=scope.instance, series=series, ordinal__lte=from_oldest)
        found = rows.order_by("-ordinal").first()
        if found is None:
            return None
        key = (found.importance, found.memory_id) if "importance" in order.columns else (found.memory_id,)
        return Place(total - found.ordinal if order.descending else found.ordinal - 1, key)

    return find


def _has_private(scope: Scope) -> bool:
    return MemoryCount.objects.filter(instance=scope.instance, private=True).exists()
