"""Many new rows at once, by COPY.

An INSERT of a thousand memories has 33,000 parameters, and building, planning and preparing it costs several times as
much as storing the rows. Constraints, triggers and the surrounding transaction work as they do for any other insert.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import Field, JSONField, Model
from psycopg.types.json import Jsonb


def insert(rows: Sequence[Model]) -> None:
    """Insert rows of one model."""
    if not rows:
        return
    fields = _fields(type(rows[0]))
    columns = ", ".join(str(field.column) for field in fields)
    statement = f"COPY {rows[0]._meta.db_table} ({columns}) FROM STDIN"
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(list(_values(row, fields)))
    for row in rows:
        row._state.adding = False
        row._state.db = connection.alias


@cache
def _fields(model: type[Model]) -> "tuple[Field[Any, Any], ...]":
    return tuple(field for field in model._meta.concrete_fields if field.column and not field.generated)


def _values(row: Model, fields: "tuple[Field[Any, Any], ...]") -> Iterator[Any]:
    for field in fields:
        value = getattr(row, field.attname)
        yield Jsonb(value) if isinstance(field, JSONField) else value
