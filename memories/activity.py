"""An instance's background jobs: listing them, retrying failed ones, and failing those whose worker died."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated
from uuid import UUID

from django.db.models import Count, IntegerField, Q, QuerySet, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from pydantic import StringConstraints

from accounts.access import Scope
from memories.embedding import backfill
from memories.embedding.backfill import find_job
from memories.filters import NotEmpty
from memories.learning import follow_up
from memories.models import Job
from memories.paging import Order, Page, name_of_list, page_of, part_of_list
from memories.review import pairing
from memories.transfer import uploads
from memoryconsole.errors import Conflict
from memoryconsole.ids import first_id_at
from memoryconsole.inputs import Input, Text

NEWEST = Order(("id",))
KINDS = {
    follow_up.EXTRACT: "Learn from a conversation",
    follow_up.SUMMARISE: "Summarise a conversation",
    follow_up.TELL: "Remember an episode",
    backfill.KIND: "Make vectors",
    pairing.KIND: "Find duplicates",
    uploads.KIND: "Import memories",
}
# The worker's task for each kind (memories/jobs.py).
TASKS = {
    **follow_up.TASKS,
    backfill.KIND: "embed_memories",
    pairing.KIND: "find_duplicates",
    uploads.KIND: "import_memories",
}
LOOKED_BACK = timedelta(hours=24)
KEPT = timedelta(days=30)
# A job younger than this may not be queued yet: the transaction that queues it may still be open.
GRACE = timedelta(minutes=5)
LOST = "The worker ended again and again while doing this, so it was given up."


class JobFilters(Input):
    """A filter that is left out means any."""

    state: Annotated[Job.State | None, NotEmpty] = None
    kind: Annotated[Annotated[Text, StringConstraints(max_length=40)] | None, NotEmpty] = None


@dataclass(frozen=True, slots=True)
class LastDay:
    """The results of all jobs of the last 24 hours, added up."""

    created: int
    updated: int
    flagged: int
    tokens: int
    failed: int


def jobs(scope: Scope, filters: JobFilters) -> QuerySet[Job]:
    rows = Job.objects.filter(instance=scope.instance)
    if filters.state is not None:
        rows = rows.filter(state=filters.state)
    return rows if filters.kind is None else rows.filter(kind=filters.kind)


def job_page(scope: Scope, filters: JobFilters, *, number: int, size: int, anchor: str = "") -> Page[Job]:
    rows = jobs(scope, filters)
    return page_of(rows, NEWEST, number=number, size=size, total=rows.count(), anchor=anchor)


def part_of_jobs(
    scope: Scope, filters: JobFilters, *, limit: int, offset: int = 0, cursor: str = ""
) -> tuple[list[Job], str | None]:
    """For programs: jobs from an offset or a cursor on, and the cursor of the next ones."""
    name = name_of_list("jobs", scope.instance.id, filters.model_dump())
    return part_of_list(jobs(scope, filters), NEWEST, name, limit=limit, offset=offset, cursor=cursor)


def is_busy(scope: Scope) -> bool:
    return Job.objects.filter(instance=scope.instance, state__in=Job.UNFINISHED).exists()


def last_day(scope: Scope) -> LastDay:
    rows = Job.objects.filter(instance=scope.instance, id__gte=first_id_at(timezone.now() - LOOKED_BACK))
    sums = rows.aggregate(
        **{name: _sum_of(name) for name in ("created", "updated", "flagged")},
        tokens=Coalesce(Sum("tokens"), 0),
        failed=Count("id", filter=Q(state=Job.State.FAILED)),
    )
    return LastDay(**sums)


def _sum_of(name: str) -> Coalesce:
    return Coalesce(Sum(Cast(KT(f"result__{name}"), IntegerField())), 0)


def retry(scope: Scope, raw_id: object) -> Job | None:
    """Queue a failed job again, as a new one. If the same work is waiting already, start that now and return None."""
    scope.require_write()
    job = find_job(scope, raw_id)
    if job.state != Job.State.FAILED:
        raise Conflict("Only what has failed can be tried again.", code="not_failed")
    if job.kind == uploads.KIND:
        raise Conflict("The file of a failed import is not kept. Upload it again.", code="not_kept")
    return RETRY_BY_KIND.get(job.kind, follow_up.try_again)(scope, job)


def _embed_again(scope: Scope, job: Job) -> Job:
    return backfill.ask_for_embedding(scope, limit=job.payload.get("limit"))


def _pair_again(scope: Scope, job: Job) -> Job:
    return pairing.ask_for_pairs(scope, threshold=job.payload.get("threshold"))


RETRY_BY_KIND: Mapping[str, Callable[[Scope, Job], Job | None]] = {
    backfill.KIND: _embed_again,
    pairing.KIND: _pair_again,
}


def fail_lost(scope: Scope) -> int:
    """Mark jobs as failed that are unfinished, but that no worker has or will get.

    A small import runs in the web server, so no worker has it; it takes less time than `GRACE`.
    """
    waiting = ProcrastinateJob.objects.filter(task_name__in=TASKS.values(), status__in=["todo", "doing"])
    waiting = waiting.filter(args__instance_id=str(scope.instance.id))
    alive = {UUID(args["job_id"]) for args in waiting.values_list("args", flat=True) if args.get("job_id")}
    rows = Job.objects.filter(instance=scope.instance, kind__in=TASKS, state__in=Job.UNFINISHED)
    begun = Coalesce("started_at", "created_at")
    rows = rows.alias(begun=begun).filter(begun__lt=timezone.now() - GRACE).exclude(id__in=alive)
    imports = uploads.fail_lost(scope, rows.filter(kind=uploads.KIND))
    rest = rows.exclude(kind=uploads.KIND)
    return imports + rest.update(state=Job.State.FAILED, error=LOST, finished_at=timezone.now())


def forget_old(scope: Scope) -> int:
    """Delete finished jobs after a month."""
    rows = Job.objects.filter(instance=scope.instance, id__lt=first_id_at(timezone.now() - KEPT))
    return rows.exclude(state__in=Job.UNFINISHED).delete()[0]
