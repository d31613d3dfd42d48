"""The database connection of this thread."""

from django.db import connection


def release_connection() -> None:
    """Give it back to the pool before waiting for somebody else's network; the next query takes one again."""
    if not connection.in_atomic_block:
        connection.close()
