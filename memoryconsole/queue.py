"""The queue of jobs, as far as whoever queues them asks about it."""

from django.db.models import BooleanField
from django.db.models.expressions import RawSQL
from procrastinate.contrib.django.models import ProcrastinateJob

# The condition of a partial index, spelt as a literal: with a parameter a generic plan could not use the index.
IS_TODO = RawSQL("status = 'todo'", (), output_field=BooleanField())


def is_waiting(queueing_lock: str) -> bool:
    """Whether a job with this lock is there that nobody has begun."""
    return ProcrastinateJob.objects.filter(IS_TODO, queueing_lock=queueing_lock).exists()
