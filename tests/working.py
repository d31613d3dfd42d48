"""Running queued jobs without the worker process, one after the other."""

import json
from typing import Any

from django.db import connection
from procrastinate import sql
from procrastinate.contrib.django.models import ProcrastinateJob

from memories import jobs
from memories.asking import Unavailable
from memories.learning.follow_up import TASKS


def waiting() -> list[ProcrastinateJob]:
    """Queued jobs about conversations."""
    return list(ProcrastinateJob.objects.filter(task_name__in=TASKS.values(), status="todo").order_by("id"))


def work(most: int = 20) -> int:
    """Run queued jobs until there are none, without retries; return how many."""
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


def put_off(number: int) -> None:
    """Schedule all queued jobs for five minutes from now, as after a few failures."""
    with connection.cursor() as cursor:
        later = "UPDATE procrastinate_jobs SET scheduled_at = now() + interval '5 minutes' WHERE status = 'todo'"
        cursor.execute(later)
        assert cursor.rowcount == number


def what_the_worker_takes() -> dict[str, Any] | None:
    """The arguments of the job that procrastinate would fetch next, which then holds its lock."""
    with connection.cursor() as cursor:
        cursor.execute(sql.queries["register_worker"])
        cursor.execute(sql.queries["fetch_job"], {"queues": None, "worker_id": cursor.fetchone()[0]})
        columns = [column.name for column in cursor.description]
        job: dict[str, Any] = dict(zip(columns, cursor.fetchone(), strict=True))
        arguments = job["args"]
        return json.loads(arguments) if isinstance(arguments, str) else arguments


def finished(arguments: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE procrastinate_jobs SET status = 'succeeded' WHERE args = %s", [json.dumps(arguments)])
