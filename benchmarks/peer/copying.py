"""Many rows into a peer's own PostgreSQL table, for peers that only know how to insert them one by one."""

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


def run(database: str, statement: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(statement)


def rows(
    place: Place,
    table: str,
    columns: Mapping[str, str],
    tenants: Sequence[str],
    words: Callable[[str], str] = lambda text: text,
) -> None:
    """Each column of the table is an expression over what is staged."""
    chosen = f'INSERT INTO "{table}" ({", ".join(columns)}) SELECT {", ".join(columns.values())} FROM staged'
    with psycopg.connect(place.database) as connection, connection.cursor() as cursor:
        cursor.execute(STAGED)
        with cursor.copy("COPY staged FROM STDIN (FORMAT binary)") as copy:
            # A vector is written as the bytes pgvector expects, under the name of bytes.
            copy.set_types(["uuid", "bytea", "int4", "text", "text", "text", "text"])
            for tenant in tenants:
                for number in range(*place.material.tenants[tenant]):
                    text, category = place.material.texts[number], place.material.categories[number]
                    named = [UUID(int=number), packed(place, number), number, tenant, category]
                    copy.write_row([*named, text, words(text)])
        cursor.execute(chosen)


def packed(place: Place, number: int) -> bytes:
    """As pgvector sends it: how many dimensions, nothing, then each in network order."""
    return struct.pack(">HH", DIMENSIONS, 0) + bytes(place.material.vectors[number].astype(">f4").tobytes())
