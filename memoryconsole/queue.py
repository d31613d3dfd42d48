"""What procrastinate's own API lacks: asking about queued jobs, and bringing them forward."""

from django.db import connection

# The condition of a partial index, spelt as a literal: with a parameter a generic plan could not use the index.
WAITING = "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status = 'todo' AND queueing_lock = %s)"

BRING_FORWARD = """
UPDATE procrastinate_jobs SET scheduled_at = now() WHERE status = 'todo' AND lock = %s AND scheduled_at > now()
"""


def is_waiting(queueing_lock: str) -> bool:
    """Whether a job with this lock is queued and has not been started."""
    with connection.cursor() as cursor:
        cursor.execute(WAITING, [queueing_lock])
        return bool(cursor.fetchone()[0])


def bring_forward(lock: str) -> None:
    """Run the jobs with this lock now that are scheduled for later."""
    with connection.cursor() as cursor:
        cursor.execute(BRING_FORWARD, [lock])
