"""Inserting rows of several tables at once: a few rows by one statement, many by COPY.

Inserting one row through Django takes several times as long as PostgreSQL needs to store it, and an INSERT of a
thousand memories has 33,000 parameters to build, plan and prepare. Constraints, triggers and transactions work as
usual.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from json import dumps
from operator import itemgetter
from typing import Any, NamedTuple

from django.contrib.postgres.fields import ArrayField
from django.db import connection
from django.db.models import JSONField, Model

Values = Sequence[Any]


class Rows(NamedTuple):
    """New rows of one table: its columns, and for each row the values in that order."""

    table: str
    columns: tuple[str, ...]
    values: Iterable[Values]


def new_rows(model: type[Model], objects: Iterable[Model]) -> Rows:
    names, lists, documents = _columns(model)
    values = itemgetter(*names)
    return Rows(model._meta.db_table, names, (_encoded(values(vars(each)), lists, documents) for each in objects))


def insert_one(*tables: Rows) -> None:
    """Insert a handful of rows of all these tables by one statement, which PostgreSQL prepares once."""
    rows = [list(part.values) for part in tables]
    shape = tuple((part.table, part.columns, len(values)) for part, values in zip(tables, rows, strict=True))
    with connection.cursor() as cursor:
        cursor.execute(_statement(shape), [value for values in rows for row in values for value in row])


def insert_many(*tables: Rows) -> None:
    """Copy one table after the other. PostgreSQL stores one row while the next is being made."""
    for part in tables:
        statement = f"COPY {part.table} ({', '.join(part.columns)}) FROM STDIN"
        with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as copy:
            for row in part.values:
                copy.write_row(row)


@cache
def _statement(shape: tuple[tuple[str, tuple[str, ...], int], ...]) -> str:
    *before, last = (_insert(*part) for part in shape)
    named = ", ".join(f"part{n} AS ({insert})" for n, insert in enumerate(before))
    return f"WITH {named} {last}" if named else last


def _insert(table: str, columns: tuple[str, ...], number: int) -> str:
    row = f"({', '.join(['%s'] * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * number)}"


@cache
def _columns(model: type[Model]) -> tuple[tuple[str, ...], list[int], list[int]]:
    """The columns to write, and the positions of arrays and of JSON among them."""
    fields = [field for field in model._meta.concrete_fields if not field.generated]
    lists = [n for n, field in enumerate(fields) if isinstance(field, ArrayField)]
    documents = [n for n, field in enumerate(fields) if isinstance(field, JSONField)]
    return tuple(field.attname for field in fields), lists, documents


def _encoded(values: Values, lists: Sequence[int], documents: Sequence[int]) -> Values:
    """Arrays and JSON as text: most are short or empty, so this is faster than letting the driver convert them."""
    encoded = list(values)
    for n in lists:
        encoded[n] = array_literal(encoded[n])
    for n in documents:
        if encoded[n] is not None:
            encoded[n] = dumps(encoded[n], ensure_ascii=False) if encoded[n] else "{}"
    return encoded


def array_literal(values: Sequence[object]) -> str:
    """The text that PostgreSQL reads as this array."""
    if not values:
        return "{}"
    quoted = [str(value).replace("\\", "\\\\").replace('"', '\\"') for value in values]
    return '{"' + '","'.join(quoted) + '"}'
