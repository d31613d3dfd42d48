"""Imports as jobs: the uploaded file is stored until it has been imported, and the job has its progress and report.

A small file is imported at once, a large one by the worker. The job never contains the text of a memory. The file is
deleted when it is no longer needed, and after a day in any case.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import IO, Any, cast

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import OperationalError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

from accounts.access import Actor, Scope
from memories.embedding.backfill import find_job
from memories.models import Job
from memories.transfer.formats.detecting import FORMATS, Format
from memories.transfer.importing import import_file
from memories.transfer.report import Report, report_from, report_json
from memoryconsole.errors import Conflict, Invalid
from memoryconsole.finding import find_among
from memoryconsole.ids import uuid7
from memoryconsole.presenting import when
from memoryconsole.streams import Limited, safe_name

KIND = "import-memories"
FOLDER = "imports"
KEPT = timedelta(days=1)
# The size up to which a file is imported within the request.
AT_ONCE = 1024 * 1024
STOPPED = "Something went wrong on the server. What was imported until then stays; import the file again to go on."
NOT_BEGUN: dict[str, Any] = {"done": 0, "attempts": 0, "started_at": None, "finished_at": None}
GONE = "The file is gone. Upload it again."
NO_IMPORT = "There is no such import in this instance."


def format_named(word: str) -> Format | None:
    """The format with this name; None for `auto`, which detects it."""
    if word in ("", "auto"):
        return None
    for format in FORMATS:
        if format == word:
            return format
    raise Invalid({"format": [f"Choose one of: {', '.join(FORMATS)}."]})


def keep_upload(
    scope: Scope, stream: Any, *, name: str, format: Format | None, dry_run: bool, may_confirm: bool = False
) -> Job:
    """Store the file and create the job of importing it, which `start` starts.

    With `may_confirm`, the file is kept after a dry run, for `confirm`.
    """
    scope.require_write()
    started = timezone.now()
    path = _saved(f"{FOLDER}/{scope.instance.id}/{uuid7()}", stream)
    payload = {
        "path": path,
        "name": safe_name(name),
        "format": format or "",
        "dryRun": dry_run,
        "mayConfirm": may_confirm,
        "started": when(started),
    }
    return Job.objects.create(
        instance=scope.instance,
        kind=KIND,
        actor=str(scope.actor),
        payload=payload,
        total=default_storage.size(path),
        created_at=timezone.now(),
    )


def _saved(path: str, stream: Any) -> str:
    try:
        return default_storage.save(path, File(cast(IO[bytes], Limited(stream, settings.IMPORT_MAX_BYTES))))
    except BaseException:
        remove(path)
        raise


def start(scope: Scope, job: Job) -> Job:
    """Import a small file at once, and queue a large one for the worker."""
    if job.total <= AT_ONCE:
        run_import(scope, job)
    else:
        _queue(scope, job)
    return find_job(scope, job.id)


def _queue(scope: Scope, job: Job) -> None:
    actor = scope.actor
    app.configure_task("import_memories", lock=f"import {scope.instance.id}").defer(
        instance_id=str(scope.instance.id),
        job_id=str(job.id),
        path=job.payload["path"],
        actor={"kind": actor.kind, "name": actor.name, "is_superadmin": actor.is_superadmin},
    )


def find_import(scope: Scope, raw_id: object) -> Job:
    return find_among(_imports(scope), raw_id, NO_IMPORT)


def confirm(scope: Scope, raw_id: object) -> Job:
    """Import a file after its dry run."""
    scope.require_write()
    with transaction.atomic():
        job = find_among(_imports(scope).select_for_update(), raw_id, NO_IMPORT)
        if job.state != Job.State.DONE or not job.payload.get("dryRun") or not job.payload.get("path"):
            raise Conflict("This import is going on, is done, or its file is gone. Upload the file again.")
        job.payload = {name: value for name, value in job.payload.items() if name != "report"} | {"dryRun": False}
        _imports(scope).filter(id=job.id).update(payload=job.payload, state=Job.State.QUEUED, **NOT_BEGUN)
        if job.total > AT_ONCE:
            _queue(scope, job)
    if job.total <= AT_ONCE:
        run_import(scope, job)
    return find_job(scope, job.id)


def discard(scope: Scope, raw_id: object) -> None:
    """Delete an upload, unless somebody has confirmed it in the meantime."""
    scope.require_write()
    job = find_import(scope, raw_id)
    if _imports(scope).filter(id=job.id).exclude(state__in=Job.UNFINISHED).delete()[0]:
        remove(job.payload.get("path", ""))


def run_import(scope: Scope, job: Job) -> None:
    """Import the job's file, and write progress and result to the job."""
    rows = _imports(scope).filter(id=job.id)
    payload = dict(job.payload)
    rows.update(state=Job.State.RUNNING, error="", attempts=F("attempts") + 1, started_at=timezone.now())

    def progress(report: Report, position: int) -> None:
        rows.update(done=min(position, job.total), payload={**payload, "report": report_json(report)})

    try:
        with default_storage.open(payload["path"], "rb") as file:
            report = _import(scope, file, payload, progress)
    except (Invalid, FileNotFoundError) as problem:
        reason = problem.reason if isinstance(problem, Invalid) else GONE
        _finish(rows, payload, Job.State.FAILED, error=reason)
        return
    except OperationalError:
        # The worker retries when the database is back. If a request was importing, `fail_lost` gives the job up later.
        raise
    except Exception:
        if not rows.update(state=Job.State.FAILED, error=STOPPED, finished_at=timezone.now()):
            # The instance was deleted, and the job with it.
            remove(payload["path"])
            return
        raise
    _finish(rows, {**payload, "report": report_json(report)}, Job.State.DONE, done=job.total)


def _import(scope: Scope, file: IO[bytes], payload: dict[str, Any], progress: Any) -> Report:
    return import_file(
        scope,
        file,
        format_named(payload["format"]),
        name=payload["name"],
        dry_run=payload["dryRun"],
        started=datetime.fromisoformat(payload["started"]),
        so_far=report_from(payload["report"]) if "report" in payload else None,
        progress=progress,
    )


def _finish(rows: QuerySet[Job], payload: dict[str, Any], state: str, **fields: Any) -> None:
    """Write the final state. The file is deleted, unless it is kept for `confirm`."""
    path = payload["path"]
    deletes_file = state == Job.State.FAILED or not (payload["dryRun"] and payload["mayConfirm"])
    if deletes_file:
        payload = {**payload, "path": ""}
    rows.update(state=state, payload=payload, finished_at=timezone.now(), **fields)
    if deletes_file:
        remove(path)


def fail_lost(scope: Scope, lost: QuerySet[Job]) -> int:
    """Fail imports whose process was killed; return how many."""
    jobs = list(lost)
    for job in jobs:
        _finish(_imports(scope).filter(id=job.id), job.payload, Job.State.FAILED, error=STOPPED)
    return len(jobs)


def actor_from(described: dict[str, Any]) -> Actor:
    """The actor who started the import, for the worker to act as."""
    kind = described.get("kind")
    return Actor(
        kind=kind if kind in ("user", "key", "shell") else "job",
        name=str(described.get("name", "import")),
        is_superadmin=bool(described.get("is_superadmin")),
        all_instances=True,
    )


def _imports(scope: Scope) -> QuerySet[Job]:
    return Job.objects.filter(instance=scope.instance, kind=KIND)


def remove(path: str) -> None:
    if path:
        with suppress(FileNotFoundError):
            default_storage.delete(path)


def remove_forgotten() -> int:
    """Delete files that are older than a day and do not wait for the worker."""
    waiting = ProcrastinateJob.objects.filter(task_name="import_memories", status__in=["todo", "doing"])
    wanted = {args["path"] for args in waiting.values_list("args", flat=True)}
    removed = 0
    for path in _stored():
        if path not in wanted and default_storage.get_modified_time(path) < timezone.now() - KEPT:
            remove(path)
            removed += 1
    return removed


def _stored() -> Iterator[str]:
    if not default_storage.exists(FOLDER):
        return
    for instance in default_storage.listdir(FOLDER)[0]:
        for name in default_storage.listdir(f"{FOLDER}/{instance}")[1]:
            yield f"{FOLDER}/{instance}/{name}"
