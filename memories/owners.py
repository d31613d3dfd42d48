"""The names of the end users that own memories of an instance, for completion."""

from typing import Any

from django.db import connection

from accounts.access import Scope

# Skips from one distinct name to the next in the index, however many memories each owner has.
NAMES = """
WITH RECURSIVE known AS (
    (SELECT owner FROM memories_memory
     WHERE instance_id = %(instance)s::uuid AND NOT owner = '' AND owner >= %(prefix)s {visible} ORDER BY owner LIMIT 1)
    UNION ALL
    SELECT (SELECT owner FROM memories_memory
            WHERE instance_id = %(instance)s::uuid AND NOT owner = '' AND owner > known.owner {visible}
            ORDER BY owner LIMIT 1)
    FROM known WHERE starts_with(known.owner, %(prefix)s)
)
SELECT owner FROM known WHERE starts_with(owner, %(prefix)s) LIMIT %(limit)s::int
"""
SHOWN = 50
VISIBLE = "AND (NOT visibility = 'private' OR owner = %(reader)s)"


def known_owners(scope: Scope, prefix: str = "") -> list[str]:
    """Owners whose names begin with `prefix`, in alphabetical order, if the reader may see one of their memories."""
    reader = scope.private_memories_of
    sql = NAMES.format(visible="" if reader is None else VISIBLE)
    parameters: dict[str, Any] = {
        "instance": scope.instance.id,
        "prefix": prefix.replace("\x00", ""),
        "limit": SHOWN,
        "reader": reader,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [name for (name,) in cursor.fetchall()]
