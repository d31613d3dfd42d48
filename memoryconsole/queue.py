"""The queue of jobs, as far as whoever queues them asks about it or has a wish."""

from django.db import connection

# The condition of a partial index, spelt as a literal: with a parameter a generic plan could not use the index.
WAITING = "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status = 'todo' AND queueing_lock = %s)"

# procrastinate puts jobs off and has no way to bring them forward.
BRING_FORWARD = """
UPDATE procrastinate_jobs SET scheduled_at = now() WHERE status = 'todo' AND lock = %s AND scheduled_at > now()
"""


def is_waiting(queueing_lock: str) -> bool:
    """Whether a job with this lock is there that nobody has begun."""
    with connection.cursor() as cursor:
        cursor.execute(WAITING, [queueing_lock])
        return bool(cursor.fetchone()[0])


def bring_forward(lock: str) -> None:
    """Somebody asks for it: what waits with this lock for a better moment is tried now."""
    with connection.cursor() as cursor:
        cursor.execute(BRING_FORWARD, [lock])
