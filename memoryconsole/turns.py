"""One at a time, also between processes: whoever comes second waits for the first one's transaction to end."""

from django.db import connection


def wait_for_turn(name: str) -> None:
    """Hold the turn `name` until the current transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"memory console: {name}"])
