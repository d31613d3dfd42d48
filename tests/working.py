"""What the worker does, without the worker: the jobs that wait, one after the other."""

from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob

from memories import jobs
from memories.asking import Unavailable
from memories.learning.follow_up import TASKS


def waiting() -> list[ProcrastinateJob]:
    """What conversations have set in motion and nobody has begun."""
    return list(ProcrastinateJob.objects.filter(task_name__in=TASKS.values(), status="todo").order_by("id"))


def work(most: int = 20) -> int:
    """Do what waits until nothing does; how many jobs that were. What should be tried again later is not."""
    for done in range(most):
        queued = waiting()
        if not queued:
            return done
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM procrastinate_jobs WHERE id = %s", [queued[0].id])
        try:
            getattr(jobs, queued[0].task_name)(**queued[0].args)
        except Unavailable:
            continue
    raise AssertionError(f"more than {most} jobs")
