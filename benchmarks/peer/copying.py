"""Fill a peer's PostgreSQL table by COPY, because the peer itself would insert the rows one by one."""

import struct
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

import psycopg
from material import DIMENSIONS
from serve import Place

STAGED = """
CREATE TEMP TABLE staged (id uuid, vector vector, number int, tenant text, category text, content text, words text)
ON COMMIT DROP
"""


def execute(database: str, statement: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(statement)


def copy_rows(
    place: Place,
    table: str,
    columns: Mapping[str, str],
    tenants: Sequence[str],
    words: Callable[[str], str] = lambda text: text,
) -> None:
    """Fill the table. `columns` are its columns, each with an SQL expression over those of `staged`."""
    insert = f'INSERT INTO "{table}" ({", ".join(columns)}) SELECT {", ".join(columns.values())} FROM staged'
    with psycopg.connect(place.database) as connection, connection.cursor() as cursor:
        cursor.execute(STAGED)
        with cursor.copy("COPY staged FROM STDIN (FORMAT binary)") as copy:
            # Vectors are declared as bytea, because they are already in pgvector's binary format.
            copy.set_types(["uuid", "bytea", "int4", "text", "text", "text", "text"])
            for tenant in tenants:
                for number in range(*place.material.tenants[tenant]):
                    text, category = place.material.texts[number], place.material.categories[number]
                    row = [UUID(int=number), packed(place, number), number, tenant, category, text, words(text)]
                    copy.write_row(row)
        cursor.execute(insert)


def packed(place: Place, number: int) -> bytes:
    """A vector in pgvector's binary format: the number of dimensions, 16 unused bits, then big-endian floats."""
    return struct.pack(">HH", DIMENSIONS, 0) + bytes(place.material.vectors[number].astype(">f4").tobytes())
