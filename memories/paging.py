"""Pages of a long list at the same cost at every depth.

A page is read from the nearest known position: an end of the list, the first row of the page that linked to it (an
anchor), or a milestone. So no page has to skip more than a thousand rows, whether its number was clicked or typed.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar, cast
from uuid import UUID

from django.core import signing
from django.core.exceptions import ValidationError
from django.db.models import BooleanField, F, Field, Func, Model, QuerySet, Value
from django.db.models.expressions import Combinable
from django.utils.timezone import is_naive

from memoryconsole.errors import Invalid
from memoryconsole.inputs import whole_number

Row = TypeVar("Row", bound=Model)
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """Columns that make a total order, all ascending or all descending; the last one is the id."""

    columns: tuple[str, ...]
    descending: bool = True

    def key_of(self, row: Model) -> Key:
        return tuple(getattr(row, column) for column in self.columns)

    def sorted(self, rows: QuerySet[Row], *, backwards: bool = False) -> QuerySet[Row]:
        sign = "-" if self.descending is not backwards else ""
        return rows.order_by(*(sign + column for column in self.columns))

    def beyond(
        self, rows: QuerySet[Row], key: Key, *, backwards: bool = False, including: bool = False
    ) -> QuerySet[Row]:
        """The rows after `key` in this order, or before it."""
        operator = "<" if self.descending is not backwards else ">"
        return rows.filter(_RowComparison(self.columns, operator + ("=" if including else ""), key, rows.model))

    def part_of(self, rows: QuerySet[Row], *, after: Key | None, offset: int, limit: int) -> tuple[list[Row], bool]:
        """`limit` rows from a position in the list, and whether there are more after them."""
        rows = self.beyond(rows, after) if after else rows
        found = list(self.sorted(rows)[offset : offset + limit + 1])
        return found[:limit], len(found) > limit


class _RowComparison(Func):
    """`(a, b) < (1, 2)`: a row comparison, which PostgreSQL answers by one range of an index."""

    conditional = True

    def __init__(self, columns: Sequence[str], operator: str, key: Key, model: type[Model]) -> None:
        left: list[Combinable] = [F(column) for column in columns]
        right = [Value(part, _column(model, column)) for column, part in zip(columns, key, strict=True)]
        marks = ", ".join(["%s"] * len(columns))
        self.comparison = f"({marks}) {operator} ({marks})"
        super().__init__(*left, *right, output_field=BooleanField())

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **context: Any) -> tuple[str, tuple[Any, ...]]:
        parts = [compiler.compile(expression) for expression in self.source_expressions]
        parameters = tuple(value for _, values in parts for value in values)
        return self.comparison % tuple(sql for sql, _ in parts), parameters


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    rows: list[Row]
    number: int
    size: int
    total: int
    order: Order

    @property
    def last(self) -> int:
        return max(1, -(-self.total // self.size))

    @property
    def start(self) -> int:
        return (self.number - 1) * self.size + 1 if self.rows else 0

    @property
    def end(self) -> int:
        return self.start + len(self.rows) - 1 if self.rows else 0

    @property
    def previous(self) -> int:
        return self.number - 1

    @property
    def next(self) -> int:
        return self.number + 1

    @property
    def anchor(self) -> str:
        """This page's number and the key of its first row, for the links to other pages. Empty for search results."""
        if not self.rows or not self.order.columns:
            return ""
        return "~".join([str(self.number), *(str(part) for part in self.order.key_of(self.rows[0]))])

    @property
    def numbers(self) -> list[int | None]:
        """The page numbers to link to: first, last and those around this page. None stands for a gap."""
        near = {1, self.last, *range(self.number - 2, self.number + 3)}
        shown: list[int | None] = []
        for number in sorted(n for n in near if 1 <= n <= self.last):
            if shown and shown[-1] is not None and number > shown[-1] + 1:
                shown.append(None)
            shown.append(number)
        return shown


@dataclass(frozen=True, slots=True)
class Place:
    """A row whose position is known: the row with `key` is `offset` rows after the first."""

    offset: int
    key: Key


def page_of(
    rows: QuerySet[Row],
    order: Order,
    *,
    number: int,
    size: int,
    total: int,
    anchor: str = "",
    milestone: Callable[[int], Place | None] = lambda offset: None,
) -> Page[Row]:
    """Page `number` of the list, read from the nearest known position. A number past the end means the last page."""
    number = max(1, min(number, -(-total // size)))
    skip = (number - 1) * size
    from_end = max(0, total - skip - size)
    places = [place for place in (_read_anchor(anchor, order, rows.model, size), milestone(skip)) if place]
    nearest = min(places, key=lambda place: abs(place.offset - skip), default=None)
    if nearest and abs(nearest.offset - skip) < min(skip, from_end):
        found = _from_place(rows, order, nearest.key, skip - nearest.offset, size)
    elif skip <= from_end:
        found = list(order.sorted(rows)[skip : skip + size])
    else:
        length = min(size, total - skip)
        found = list(order.sorted(rows, backwards=True)[from_end : from_end + length])[::-1]
    return Page(found, number, size, total, order)


def _from_place(rows: QuerySet[Row], order: Order, key: Key, distance: int, size: int) -> list[Row]:
    """A page of rows that begins `distance` rows after the key, or before it if that is negative."""
    before: list[Row] = []
    if distance < 0:
        reverse = order.sorted(order.beyond(rows, key, backwards=True), backwards=True)
        before = list(reverse[max(0, -distance - size) : -distance])[::-1]
    wanted = size - len(before)
    if not wanted:
        return before
    start = max(0, distance)
    return before + list(order.sorted(order.beyond(rows, key, including=True))[start : start + wanted])


def _column(model: type[Model], name: str) -> "Field[Any, Any]":
    """Only for typing: `get_field` may also return a relation, but orders name only columns."""
    return cast("Field[Any, Any]", model._meta.get_field(name))


def _read_anchor(anchor: str, order: Order, model: type[Model], size: int) -> Place | None:
    """Ignore an anchor that cannot be read, because it only saves time."""
    typed, *parts = anchor.split("~")
    number = whole_number(typed)
    if number is None:
        return None
    try:
        key = _read_key(parts, order, model)
    except (ValidationError, ValueError):
        return None
    if any(isinstance(part, datetime) and is_naive(part) for part in key):
        return None
    return Place((number - 1) * size, key)


def _read_key(parts: Sequence[str], order: Order, model: type[Model]) -> Key:
    return tuple(_column(model, name).clean(part, None) for name, part in zip(order.columns, parts, strict=True))


def part_of_list(
    rows: QuerySet[Row], order: Order, list_name: str, *, limit: int, offset: int = 0, cursor: str = ""
) -> tuple[list[Row], str | None]:
    """For programs: `limit` rows from an offset or a cursor on, and the cursor of the next ones."""
    after = _read_cursor(cursor, list_name, order, rows.model) if cursor else None
    found, more = order.part_of(rows, after=after, offset=offset, limit=limit)
    return found, write_cursor(list_name, order.key_of(found[-1])) if more else None


def name_of_list(kind: str, instance_id: UUID, filters: Mapping[str, Any]) -> str:
    """The name a list's cursors are signed for. It does not depend on the order of filters."""
    in_order = {name: sorted(value) if isinstance(value, list) else value for name, value in filters.items()}
    return json.dumps([kind, instance_id, in_order], sort_keys=True, default=str)


def write_cursor(list_name: str, key: Key) -> str:
    """A signed cursor. It is valid for this list only: with other filters it would skip or repeat rows."""
    return signing.dumps([str(part) for part in key], salt=f"cursor of {list_name}")


def _read_cursor(cursor: str, list_name: str, order: Order, model: type[Model]) -> Key:
    """The key of the row after which the cursor continues."""
    try:
        return _read_key(signing.loads(cursor, salt=f"cursor of {list_name}"), order, model)
    except (signing.BadSignature, ValidationError, ValueError, TypeError):
        raise Invalid({"cursor": [NOT_OF_THIS_LIST]}) from None


NOT_OF_THIS_LIST = (
    "This cursor is not valid here. Use the nextCursor of an earlier answer, unchanged and with the same filters."
)
