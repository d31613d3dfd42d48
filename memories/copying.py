"""Many new memories at once, by COPY.

An INSERT of a thousand memories has 33,000 parameters, and building, planning and preparing it costs several times as
much as storing the rows. Constraints, triggers and the surrounding transaction work as they do for any other insert.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection
from django.db.models import JSONField
from psycopg.types.json import Jsonb

from memories.models import Memory

COLUMNS = [field for field in Memory._meta.concrete_fields if field.column and not field.generated]
COPY = f"COPY memories_memory ({', '.join(str(field.column) for field in COLUMNS)}) FROM STDIN"


def insert(memories: Sequence[Memory]) -> None:
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(COPY) as copy:
        for memory in memories:
            copy.write_row(list(_values(memory)))
    for memory in memories:
        memory._state.adding = False
        memory._state.db = connection.alias


def _values(memory: Memory) -> Iterator[Any]:
    for field in COLUMNS:
        value = getattr(memory, field.attname)
        yield Jsonb(value) if isinstance(field, JSONField) else value
