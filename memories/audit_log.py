"""Reading the audit log: filtered, from the newest entry to the oldest, at the same cost at every depth."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import connection
from django.db.models import BooleanField, F, Func, IntegerField, QuerySet, UUIDField
from django.db.models.expressions import RawSQL
from pydantic import StringConstraints
from typing_extensions import TypedDict

from accounts.access import Scope
from memories.draft import Name
from memories.filters import NotEmpty
from memories.models import AuditEntry
from memories.paging import Order, name_of_list, part_of_list
from memories.transfer.formats.table import escaped_formula
from memoryconsole.connections import release_connection
from memoryconsole.ids import first_id_at
from memoryconsole.inputs import Input, Moment, Text
from memoryconsole.presenting import Id, When, when

NEWEST = Order(("id",))
EXPORTED_AT_ONCE = 500
CHOICES = 200
Format = Literal["csv", "jsonl"]


class AuditFilters(Input):
    """Every filter narrows the result; leaving one out means any."""

    actor: Annotated[Name | None, NotEmpty] = None
    action: Annotated[Annotated[Text, StringConstraints(max_length=40)] | None, NotEmpty] = None
    memory_id: Annotated[UUID | None, NotEmpty] = None
    created_after: Annotated[Moment | None, NotEmpty] = None
    created_before: Annotated[Moment | None, NotEmpty] = None


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry with the first of its memory ids: a deletion may have a million of them."""

    row: AuditEntry
    memories: int
    memory_ids: list[UUID]

    @property
    def not_shown(self) -> int:
        return self.memories - len(self.memory_ids)


@dataclass(frozen=True, slots=True)
class Entries:
    entries: list[Entry]
    next_cursor: str | None


def _about_memory(scope: Scope, memory_id: UUID) -> RawSQL:
    """As a subquery, so that the index of memory ids is used: the planner overestimates the matches and would scan."""
    return RawSQL(
        "id = ANY(ARRAY(SELECT id FROM memories_auditentry WHERE instance_id = %s AND memory_ids @> %s::uuid[]))",
        (scope.instance.id, [memory_id]),
        output_field=BooleanField(),
    )


def matching(scope: Scope, filters: AuditFilters) -> QuerySet[AuditEntry]:
    rows = AuditEntry.objects.filter(instance=scope.instance)
    if filters.actor is not None:
        rows = rows.filter(actor=filters.actor)
    if filters.action is not None:
        rows = rows.filter(action=filters.action)
    if filters.memory_id is not None:
        rows = rows.filter(_about_memory(scope, filters.memory_id))
    # Ids sort by creation time.
    if filters.created_after is not None:
        rows = rows.filter(id__gte=first_id_at(filters.created_after))
    if filters.created_before is not None:
        rows = rows.filter(id__lt=first_id_at(filters.created_before))
    return rows


def list_entries(scope: Scope, filters: AuditFilters, *, limit: int, cursor: str = "", ids: int = 1000) -> Entries:
    """The newest entries, or those after a cursor, each with at most `ids` of its memory ids."""
    rows = matching(scope, filters).defer("memory_ids")
    rows = rows.annotate(memories=Func(F("memory_ids"), function="cardinality", output_field=IntegerField()))
    rows = rows.annotate(first_ids=_First("memory_ids", ids))
    values = filters.model_dump(include=set(AuditFilters.model_fields))
    name = name_of_list("audit", scope.instance.id, values)
    found, following = part_of_list(rows, NEWEST, name, limit=limit, cursor=cursor)
    return Entries([Entry(row, vars(row)["memories"], vars(row)["first_ids"]) for row in found], following)


class _First(Func):
    """The first elements of an array."""

    template = "(%(expressions)s)[1:%(n)s]"
    output_field = ArrayField(UUIDField())

    def __init__(self, column: str, n: int) -> None:
        super().__init__(F(column), n=int(n))


# Skips from one distinct value to the next in the index, however many entries each value has.
DISTINCT = """
WITH RECURSIVE found AS (
    (SELECT {column} FROM memories_auditentry WHERE instance_id = %(instance)s ORDER BY {column} LIMIT 1)
    UNION ALL
    SELECT (SELECT e.{column} FROM memories_auditentry e WHERE e.instance_id = %(instance)s AND e.{column} > f.{column}
            ORDER BY e.{column} LIMIT 1)
    FROM found f WHERE f.{column} IS NOT NULL
)
SELECT {column} FROM found WHERE {column} IS NOT NULL LIMIT {choices}
"""


def known_values(scope: Scope, column: Literal["actor", "action"]) -> list[str]:
    """The actors or actions that occur in this instance's log."""
    with connection.cursor() as cursor:
        cursor.execute(DISTINCT.format(column=column, choices=CHOICES), {"instance": scope.instance.id})
        return [value for (value,) in cursor.fetchall()]


def export(scope: Scope, filters: AuditFilters, format: Format) -> Iterator[str]:
    """All matching entries as text, in parts. No database connection is held while a part is being sent."""
    write = {"csv": _csv_lines, "jsonl": _json_lines}[format]
    if format == "csv":
        yield _csv_text([COLUMNS])
    after = None
    more = True
    while more:
        rows, more = NEWEST.part_of(matching(scope, filters), after=after, offset=0, limit=EXPORTED_AT_ONCE)
        after = NEWEST.key_of(rows[-1]) if rows else None
        release_connection()
        yield "".join(write(row) for row in rows)


COLUMNS = ["id", "createdAt", "actor", "action", "memoryId", "detail"]


def _csv_lines(entry: AuditEntry) -> str:
    """One line for each memory of the entry."""
    detail = json.dumps(entry.detail, ensure_ascii=False) if entry.detail else ""
    ids: list[UUID] | list[str] = entry.memory_ids or [""]
    known = [str(entry.id), when(entry.created_at), entry.actor, entry.action]
    return _csv_text([[*known, str(id), detail] for id in ids])


def _csv_text(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([[escaped_formula(cell) for cell in row] for row in rows])
    return text.getvalue()


def _json_lines(entry: AuditEntry) -> str:
    return json.dumps(entry_json(entry, entry.memory_ids, len(entry.memory_ids)), ensure_ascii=False) + "\n"


class EntryJson(TypedDict):
    """`memories` is how many memories it was about; `memoryIds` names the first 1,000 of them."""

    id: Id
    createdAt: When
    actor: str
    action: str
    memories: int
    memoryIds: list[Id]
    detail: dict[str, Any]


def entry_json(entry: AuditEntry, memory_ids: Sequence[UUID], memories: int) -> EntryJson:
    return {
        "id": str(entry.id),
        "createdAt": when(entry.created_at),
        "actor": entry.actor,
        "action": entry.action,
        "memories": memories,
        "memoryIds": [str(id) for id in memory_ids],
        "detail": entry.detail,
    }
