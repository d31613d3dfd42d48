"""Jobs of a dead worker are taken up again, but not for ever; a job that waits for another one begins soon after it."""

import asyncio
import time

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from procrastinate.periodic import PeriodicDeferrer

from memoryconsole import worker
from tests.domain.looking import in_another_connection


def left_behind(attempts: int, lock: str | None = None, status: str = "doing") -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, args, status, attempts, queueing_lock)"
            " VALUES ('default', 'forget_finished_jobs', '{}', %s::procrastinate_job_status, %s, %s) RETURNING id",
            [status, attempts, lock],
        )
        return int(cursor.fetchone()[0])


def status_of(job: int) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT status FROM procrastinate_jobs WHERE id = %s", [job])
        return str(cursor.fetchone()[0])


async def one_round() -> None:
    async with worker.worker_app().open_async() as app:
        await worker.take_up_stalled_jobs(app)


@pytest.mark.django_db(transaction=True)
def test_a_job_that_keeps_killing_workers_is_given_up():
    job = left_behind(attempts=0)
    for _ in range(worker.MOST_DEATHS):
        asyncio.run(one_round())
        assert status_of(job) == "todo"
        die_with(job)
    asyncio.run(one_round())
    assert status_of(job) == "failed"


def die_with(job: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE procrastinate_jobs SET status = 'doing', worker_id = NULL WHERE id = %s", [job])


@pytest.mark.django_db(transaction=True)
def test_a_job_that_has_waited_long_for_an_api_is_not_given_up_for_one_dead_worker():
    job = left_behind(attempts=50)
    asyncio.run(one_round())
    assert status_of(job) == "todo"


@pytest.mark.django_db(transaction=True)
def test_a_job_whose_like_is_waiting_already_is_given_up_for_that_one():
    dead, waiting = left_behind(1, lock="same"), left_behind(0, lock="same", status="todo")
    other = left_behind(1)
    asyncio.run(one_round())
    assert (status_of(dead), status_of(waiting), status_of(other)) == ("failed", "todo", "todo")


def end_of(job: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE procrastinate_jobs SET status = 'succeeded' WHERE id = %s", [job])


@pytest.mark.django_db(transaction=True)
def test_a_job_begins_soon_after_the_one_it_waits_for():
    first, second = left_behind(1), left_behind(0, status="todo")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id")
        alive = cursor.fetchone()[0]
        cursor.execute("UPDATE procrastinate_jobs SET lock = 'one at a time'")
        cursor.execute("UPDATE procrastinate_jobs SET worker_id = %s WHERE id = %s", [alive, first])

    elsewhere = sync_to_async(in_another_connection)

    async def waited() -> float:
        work = asyncio.create_task(worker._work(worker.worker_app()))
        await asyncio.sleep(1.5)
        assert await elsewhere(status_of, second) == "todo"
        await elsewhere(end_of, first)
        start = time.monotonic()
        while await elsewhere(status_of, second) == "todo" and time.monotonic() - start < 10:
            await asyncio.sleep(0.05)
        work.cancel()
        await asyncio.wait([work])
        return time.monotonic() - start

    assert asyncio.run(waited()) < 3


@pytest.mark.django_db(transaction=True)
def test_a_worker_needs_not_look_for_what_waited_for_its_own_job(monkeypatch):
    monkeypatch.setattr(worker, "LOOK_SECONDS", 60)
    _, last = left_behind(0, status="todo"), left_behind(0, status="todo")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE procrastinate_jobs SET lock = 'one at a time', args = '{\"timestamp\": 0}'")

    async def waited() -> float:
        start = time.monotonic()
        work = asyncio.create_task(worker._work(worker.worker_app()))
        elsewhere = sync_to_async(in_another_connection)
        while await elsewhere(status_of, last) != "succeeded" and time.monotonic() - start < 10:
            await asyncio.sleep(0.05)
        work.cancel()
        await asyncio.wait([work])
        return time.monotonic() - start

    assert asyncio.run(waited()) < 5


async def begin_periodic_work() -> None:
    async with worker.worker_app().open_async() as app:
        deferrer = PeriodicDeferrer(registry=app.periodic_registry, **app.periodic_defaults)
        await deferrer.defer_jobs(deferrer.get_previous_tasks(at=time.time()))
        await sync_to_async(connections.close_all)()


@pytest.mark.django_db(transaction=True)
def test_what_was_due_while_no_worker_ran_is_made_up_for_once():
    for _ in range(2):
        asyncio.run(begin_periodic_work())
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT task_name FROM procrastinate_jobs WHERE task_name LIKE ANY ('{embed_all%,forget_old%}')"
            )
            assert sorted(cursor.fetchall()) == [("embed_all_memories",), ("forget_old_jobs",)]
            cursor.execute("UPDATE procrastinate_jobs SET status = 'succeeded' WHERE status = 'todo'")
