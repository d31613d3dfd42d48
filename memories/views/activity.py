"""/activity: an instance's background jobs, and retrying failed ones."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from accounts.access import Scope
from accounts.pages import ConsoleRequest, about_instance, page_number, render_part
from conversations.models import Conversation
from conversations.store import conversations_by_id
from memories import activity
from memories.activity import KINDS, JobFilters
from memories.models import Job
from memories.transfer import uploads
from memoryconsole import health
from memoryconsole.errors import Conflict, Invalid
from memoryconsole.inputs import read

SIZE = 25
COUNTED = ("created", "updated", "flagged", "seen", "duplicates", "conflicts")
# The counts of an import, by their names in its report.
IMPORTED = {"created": "created", "existing": "already there", "leftOut": "left out", "invalid": "with problems"}


@dataclass(frozen=True, slots=True)
class ShownJob:
    """A job as the page shows it."""

    job: Job
    conversation: Conversation | None

    @property
    def title(self) -> str:
        return "Check an import" if self.is_check else KINDS.get(self.job.kind, self.job.kind)

    @property
    def is_import(self) -> bool:
        """Its progress is counted in bytes."""
        return self.job.kind == uploads.KIND

    @property
    def is_check(self) -> bool:
        """Whether it is the dry run of an import."""
        return self.is_import and bool(self.job.payload.get("dryRun"))

    @property
    def is_unfinished(self) -> bool:
        return self.job.state in Job.UNFINISHED

    @property
    def counts(self) -> list[tuple[int, str]]:
        """The counts of its result that are not zero, with their names."""
        if self.is_import:
            report = self.job.payload.get("report", {})
            names = IMPORTED | {"created": "to be created"} if self.is_check else IMPORTED
            return [(n, names[name]) for name in names if (n := report.get(name, 0))]
        counted = [(n, name) for name in COUNTED if (n := self.job.result.get(name, 0))]
        return [(n, name.removesuffix("s") if n == 1 else name) for n, name in counted]

    @property
    def duration(self) -> str:
        if self.job.started_at is None:
            return ""
        return _in_words(self.job.started_at, self.job.finished_at or timezone.now())


@require_GET
@about_instance
def activity_page(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    filters = _filters(request)
    page = activity.job_page(
        scope,
        filters,
        number=page_number(request),
        size=SIZE,
        anchor=request.GET.get("anchor", ""),
    )
    context = {
        "page": page,
        "rows": _shown(scope, page.rows),
        "last_day": activity.last_day(scope),
        "is_busy": activity.is_busy(scope),
        "worker": health.worker(),
        "filters": filters,
        "states": Job.State.choices,
        "kinds": KINDS.items(),
    }
    return render_part(request, "memories/activity.html", "activity", context)


@require_POST
@about_instance
def activity_retry(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    try:
        job = activity.retry(scope, id)
    except Conflict as problem:
        messages.warning(request, problem.detail)
    else:
        messages.success(request, "Queued again." if job else "It was waiting already, and is tried now.")
    return redirect(f"/activity?{request.GET.urlencode()}")


def _filters(request: ConsoleRequest) -> JobFilters:
    try:
        # A form sends every field; empty ones mean any.
        return read(JobFilters, {name: value for name in ("state", "kind") if (value := request.GET.get(name))})
    except Invalid as problem:
        messages.warning(request, f"This filter cannot be used. {problem.detail}")
        return JobFilters()


def _shown(scope: Scope, jobs: list[Job]) -> list[ShownJob]:
    found = conversations_by_id(scope, [job.conversation_id for job in jobs])
    return [ShownJob(job, found.get(job.conversation_id)) for job in jobs]


def _in_words(start: datetime, end: datetime) -> str:
    seconds = max(0.0, (end - start).total_seconds())
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
