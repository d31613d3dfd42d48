"""Imports that somebody watches: the file is kept until it has been imported, its progress and report on a job.

A small file is dealt with at once, a large one by the worker. The job keeps counts, lines and reasons, never what a
memory says; the file is removed as soon as it is done with, and after a day in any case.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
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
from pydantic.alias_generators import to_camel

from accounts.access import Actor, Scope
from memories.embedding.backfill import find_job
from memories.models import Job
from memories.transfer.formats.detecting import FORMATS, Format
from memories.transfer.importing import Report, import_file
from memoryconsole.errors import Conflict, Invalid
from memoryconsole.finding import find_among
from memoryconsole.ids import uuid7
from memoryconsole.inputs import snake_name
from memoryconsole.presenting import when
from memoryconsole.scrub import scrub
from memoryconsole.streams import Limited, safe_name

KIND = "import-memories"
FOLDER = "imports"
KEPT = timedelta(days=1)
# Small enough for a request to wait for.
AT_ONCE = 1024 * 1024
STOPPED = "Something went wrong on the server. What was imported until then stays; import the file again to go on."
NOT_BEGUN: dict[str, Any] = {"done": 0, "attempts": 0, "started_at": None, "finished_at": None}
GONE = "The file is gone. Upload it again."
NO_IMPORT = "There is no such import in this instance."
# From the first to the last mark: what is quoted may have some of its own.
QUOTED = re.compile(r"“.*”", re.DOTALL)
# What these say is a word from a short list, or was meant to be.
ENUMERATED = frozenset({"category", "role", "visibility", "status", "source"})
LONGEST_WORD = 32


def format_named(word: str) -> Format | None:
    """The format somebody asked for; None to find it out."""
    if word in ("", "auto"):
        return None
    for format in FORMATS:
        if format == word:
            return format
    raise Invalid({"format": [f"Choose one of: {', '.join(FORMATS)}."]})


def keep_upload(
    scope: Scope, stream: Any, *, name: str, format: Format | None, dry_run: bool, may_confirm: bool = False
) -> Job:
    """Store the file and make the job of importing it, which nobody has started yet.

    With `may_confirm` the file stays after a dry run, for `confirm`.
    """
    scope.require_write()
    path = _saved(f"{FOLDER}/{scope.instance.id}/{uuid7()}", stream)
    payload = {
        "path": path,
        "name": safe_name(name),
        "format": format or "",
        "dryRun": dry_run,
        "mayConfirm": may_confirm,
        "started": when(timezone.now()),
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
    """At once when it is small, else by the worker."""
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
    """After a dry run: do it."""
    scope.require_write()
    with transaction.atomic():
        job = find_among(_imports(scope).select_for_update(), raw_id, NO_IMPORT)
        if job.state != Job.State.DONE or not job.payload.get("dryRun") or not job.payload.get("path"):
            raise Conflict("This import is going on, is done, or its file is gone. Upload the file again.")
        job.payload = {name: value for name, value in job.payload.items() if name != "report"}
        job.payload |= {"dryRun": False, "started": when(timezone.now())}
        _imports(scope).filter(id=job.id).update(payload=job.payload, state=Job.State.QUEUED, **NOT_BEGUN)
        if job.total > AT_ONCE:
            _queue(scope, job)
    if job.total <= AT_ONCE:
        run_import(scope, job)
    return find_job(scope, job.id)


def discard(scope: Scope, raw_id: object) -> None:
    """Forget an upload that is not wanted after all, unless somebody has confirmed it by now."""
    scope.require_write()
    job = find_import(scope, raw_id)
    if _imports(scope).filter(id=job.id).exclude(state__in=Job.UNFINISHED).delete()[0]:
        remove(job.payload.get("path", ""))


def run_import(scope: Scope, job: Job) -> None:
    """Import the job's file, and write on the job how far it is and what came of it."""
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
        _end(rows, payload, Job.State.FAILED, error=reason)
        return
    except OperationalError:
        # The worker goes on when the database is back; what a request was doing is given up soon.
        raise
    except Exception:
        if not rows.update(state=Job.State.FAILED, error=STOPPED, finished_at=timezone.now()):
            # It went with its instance, and nobody waits for it any more.
            remove(payload["path"])
            return
        raise
    _end(rows, {**payload, "report": report_json(report)}, Job.State.DONE, done=job.total)


def _import(scope: Scope, file: IO[bytes], payload: dict[str, Any], progress: Any) -> Report:
    return import_file(
        scope,
        file,
        format_named(payload["format"]),
        name=payload["name"],
        dry_run=payload["dryRun"],
        started=datetime.fromisoformat(payload["started"]),
        so_far=_report_from(payload["report"]) if "report" in payload else None,
        progress=progress,
    )


def _end(rows: QuerySet[Job], payload: dict[str, Any], state: str, **fields: Any) -> None:
    """A dry run keeps its file for the import that may follow."""
    path = payload["path"]
    is_done_with = state == Job.State.FAILED or not (payload["dryRun"] and payload["mayConfirm"])
    if is_done_with:
        payload = {**payload, "path": ""}
    rows.update(state=state, payload=payload, finished_at=timezone.now(), **fields)
    if is_done_with:
        remove(path)


def give_up(scope: Scope, lost: QuerySet[Job]) -> int:
    """Imports that were killed with the process that did them; how many."""
    jobs = list(lost)
    for job in jobs:
        _end(_imports(scope).filter(id=job.id), job.payload, Job.State.FAILED, error=STOPPED)
    return len(jobs)


def actor_from(described: dict[str, Any]) -> Actor:
    """Whoever started it, as the worker acts for them."""
    kind = described.get("kind")
    return Actor(
        kind=kind if kind in ("user", "key", "shell") else "job",
        name=str(described.get("name", "import")),
        is_superadmin=bool(described.get("is_superadmin")),
        all_instances=True,
    )


def report_json(report: Report) -> dict[str, Any]:
    """Lines and reasons; of what was quoted from the file only words that are no memory's text."""
    found = asdict(report)
    problems = [{"line": each["line"], "errors": _unquoted(each["errors"])} for each in found.pop("problems")]
    return {**{to_camel(name): value for name, value in found.items()}, "problems": problems}


def _report_from(told: dict[str, Any]) -> Report:
    return Report(**{snake_name(name): value for name, value in told.items()})


def _unquoted(errors: dict[str, list[str]]) -> dict[str, list[str]]:
    return {
        field[:100]: [QUOTED.sub(_short if _is_enumerated(field) else "“…”", reason) for reason in reasons]
        for field, reasons in errors.items()
    }


def _is_enumerated(field: str) -> bool:
    """Also that of an earlier version: `versions.0.category`."""
    return field.rpartition(".")[2] in ENUMERATED


def _short(quoted: re.Match[str]) -> str:
    """A text that slipped into the wrong column is cut off, and a credential in it replaced as anywhere else."""
    word = scrub(quoted[0][1:-1])[0]
    return f"“{word}”" if len(word) <= LONGEST_WORD else f"“{word[:LONGEST_WORD].rstrip()}…”"


def _imports(scope: Scope) -> QuerySet[Job]:
    return Job.objects.filter(instance=scope.instance, kind=KIND)


def remove(path: str) -> None:
    if path:
        with suppress(FileNotFoundError):
            default_storage.delete(path)


def remove_forgotten() -> int:
    """Files that nobody has confirmed for a day, or whose job is gone; not those that wait for a worker."""
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
