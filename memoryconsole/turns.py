"""Advisory locks, for what only one transaction may do at a time."""

from django.db import connection


def wait_for_turn(name: str) -> None:
    """Wait for the lock `name`, and hold it until the current transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"memory console: {name}"])
