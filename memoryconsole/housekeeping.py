"""Jobs that look after the job queue itself.

There must always be at least one periodic job: without any, procrastinate's worker stops noticing that its listener or
its heartbeat has died, and would be taken for dead while it still works.
"""

from procrastinate import JobContext
from procrastinate.contrib.django import app

KEEP_FINISHED_HOURS = 72


@app.periodic(cron="23 * * * *")
@app.task(name="forget_finished_jobs", queueing_lock="forget_finished_jobs", pass_context=True)
async def forget_finished_jobs(context: JobContext, timestamp: int) -> None:
    await context.app.job_manager.delete_old_jobs(
        nb_hours=KEEP_FINISHED_HOURS, include_failed=True, include_cancelled=True, include_aborted=True
    )
