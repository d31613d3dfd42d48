"""The process that runs queued jobs."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from procrastinate import App, PsycopgConnector
from procrastinate.connector import Notify
from procrastinate.contrib.django import app
from procrastinate.contrib.django.utils import connector_params
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException, UniqueViolation
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager, NotificationCallback

from memoryconsole import embedded

log = logging.getLogger(__name__)

# A job has this long to finish when the worker is told to stop; then it is left for the next worker.
GRACE_SECONDS = 5
ROUND_SECONDS = 30
HEARTBEAT_SECONDS = 5
STALLED_SECONDS = 30
# A job is given up when this many workers have died with it. Each lowers its priority by one, which counts them; the
# attempts cannot, because a job that waits for an API has many.
MOST_DEATHS = 5
# Periodic jobs missed in this time are run later: some consoles are stopped every night, for a backup.
MISSED_SECONDS = 24 * 60 * 60
# A nightly task that is also queued at every start: the server may have got another key or model meanwhile.
AT_START = "embed_all_memories"
# How often to poll for jobs whose lock another worker has released, because procrastinate does not notify of that.
LOOK_SECONDS = 0.5
# How soon to look after a job of our own has released its lock; later saves are embedded in the same job.
NEXT_SECONDS = 0.1


class PatientConnector(PsycopgConnector):
    """Listens again after the database was unavailable; procrastinate's own gives up, and the worker with it."""

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        while True:
            try:
                await super().listen_notify(on_notification=on_notification, channels=channels)
            except ConnectorException:
                await asyncio.sleep(1)


class PatientManager(JobManager):
    """Corrects procrastinate's manager in two places.

    When a job has released its lock, the next job with that lock is looked for soon, not at the next poll. And a job
    that cannot be tried again, because another of its kind is queued already, fails instead of staying "running".
    """

    look: NotificationCallback | None = None

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        self.look = on_notification
        await super().listen_for_jobs(on_notification=on_notification, queues=queues)

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        await super().finish_job(job, status, delete_job)
        if job.lock:
            asyncio.get_running_loop().call_later(NEXT_SECONDS, self._look_again)

    def _look_again(self) -> None:
        if self.look:
            notified = self.look(channel="", notification={"type": "job_inserted", "job_id": 0})
            # Kept, because asyncio drops a task that nobody refers to.
            self.looking = asyncio.ensure_future(notified)

    async def retry_job(
        self,
        job: Job,
        retry_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        try:
            await super().retry_job(job, retry_at, priority, queue, lock)
        except UniqueViolation:
            await self.finish_job(job, Status.FAILED, delete_job=False)


def run() -> None:
    asyncio.run(_work(worker_app()))


def worker_app() -> App:
    """An app with the same tasks and connections of its own.

    Tasks stay bound to the Django app, so a job that queues another one does it inside its own transaction.
    """
    worker = App(
        connector=PatientConnector(kwargs=connector_params()),
        import_paths=app.import_paths,
        worker_defaults=app.worker_defaults,
        periodic_defaults={"max_delay": MISSED_SECONDS},
    )
    worker.job_manager = PatientManager(worker.connector)
    worker.tasks = app.tasks
    worker.periodic_registry = app.periodic_registry
    return worker


async def _work(worker: App) -> None:
    loop = asyncio.get_running_loop()
    async with worker.open_async():
        await _queue(worker, AT_START)
        rounds = asyncio.create_task(_rounds(worker))
        work = asyncio.create_task(
            worker.run_worker_async(
                install_signal_handlers=False,
                shutdown_graceful_timeout=GRACE_SECONDS,
                update_heartbeat_interval=HEARTBEAT_SECONDS,
                stalled_worker_timeout=STALLED_SECONDS,
                fetch_job_polling_interval=LOOK_SECONDS,
            )
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, _stop, work)
        try:
            with suppress(asyncio.CancelledError):
                await work
        finally:
            rounds.cancel()


async def _queue(worker: App, task: str) -> None:
    """Queue a periodic task now."""
    with suppress(AlreadyEnqueued):
        await worker.configure_task(task, queueing_lock=task).defer_async(timestamp=int(time.time()))


def _stop(work: asyncio.Task[None]) -> None:
    work.cancel()
    # A job running in a thread cannot be interrupted, and Python would wait for it for ever.
    asyncio.get_running_loop().call_later(GRACE_SECONDS + 2, _give_up)


def _give_up() -> None:
    embedded.leave()
    os._exit(1)


async def _rounds(worker: App) -> None:
    while True:
        try:
            await take_up_stalled_jobs(worker)
        except ConnectorException:
            log.warning("The database did not answer; looking after the jobs again in %s s.", ROUND_SECONDS)
        # Periodic jobs are queued on Django's connection, which nothing else closes.
        await sync_to_async(close_old_connections)()
        await asyncio.sleep(ROUND_SECONDS)


async def take_up_stalled_jobs(worker: App) -> None:
    """Retry the jobs of workers that died, except a job that keeps killing workers."""
    for job in await worker.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_SECONDS):
        if job.priority <= -MOST_DEATHS:
            await worker.job_manager.finish_job(job, Status.FAILED, delete_job=False)
        else:
            await worker.job_manager.retry_job(job, priority=job.priority - 1)
