"""Many new rows at once, by COPY.

An INSERT of a thousand memories has 33,000 parameters, and building, planning and preparing it costs several times as
much as storing the rows. Constraints, triggers and the surrounding transaction work as they do for any other insert.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from json import dumps
from operator import itemgetter
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import connection
from django.db.models import JSONField, Model


def insert(rows: Sequence[Model]) -> None:
    """Insert rows of one model."""
    if not rows:
        return
    names, lists, documents = columns(type(rows[0]))
    values = itemgetter(*names)
    insert_values(type(rows[0]), names, (_written(values(vars(row)), lists, documents) for row in rows))
    for row in rows:
        row._state.adding = False
        row._state.db = connection.alias


def insert_values(model: type[Model], names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert values of these columns, in their order. While one row is made, PostgreSQL stores the one before."""
    statement = f"COPY {model._meta.db_table} ({', '.join(names)}) FROM STDIN"
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


@cache
def columns(model: type[Model]) -> tuple[list[str], list[int], list[int]]:
    """The columns that are written, and which of them are lists and which JSON."""
    fields = [field for field in model._meta.concrete_fields if not field.generated]
    lists = [n for n, field in enumerate(fields) if isinstance(field, ArrayField)]
    documents = [n for n, field in enumerate(fields) if isinstance(field, JSONField)]
    return [field.attname for field in fields], lists, documents


def _written(values: Sequence[Any], lists: Sequence[int], documents: Sequence[int]) -> Sequence[Any]:
    """As PostgreSQL reads them. Most lists and documents are short, and the driver would go the long way."""
    written = list(values)
    for n in lists:
        written[n] = _list(written[n]) if written[n] else "{}"
    for n in documents:
        written[n] = dumps(written[n], ensure_ascii=False) if written[n] else "{}"
    return written


def _list(values: Iterable[object]) -> str:
    quoted = [str(value).replace("\\", "\\\\").replace('"', '\\"') for value in values]
    return '{"' + '","'.join(quoted) + '"}'
