"""The queue of jobs, as far as whoever queues them asks about it."""

from django.db import connection

# The condition of a partial index, spelt as a literal: with a parameter a generic plan could not use the index.
WAITING = "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status = 'todo' AND queueing_lock = %s)"


def is_waiting(queueing_lock: str) -> bool:
    """Whether a job with this lock is there that nobody has begun."""
    with connection.cursor() as cursor:
        cursor.execute(WAITING, [queueing_lock])
        return bool(cursor.fetchone()[0])
