"""/memory/export and /memory/import: export to a file, and import a file after a dry run."""

from functools import partial
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.access import Scope
from accounts.pages import ConsoleRequest, about_instance, render_part
from memories.models import Job
from memories.transfer import uploads
from memories.transfer.exporting import CONTENT_TYPES, Format, export
from memories.views.listing import filters_in, list_url
from memoryconsole.downloading import download
from memoryconsole.errors import Conflict, Invalid, Problem

FORMATS = [
    ("auto", "Find out"),
    ("jsonl", "JSON lines"),
    ("csv", "CSV"),
    ("mem0", "mem0's export"),
    ("chatgpt", "ChatGPT's memories"),
]


@require_GET
@about_instance
def memory_export(request: ConsoleRequest, scope: Scope) -> HttpResponseBase:
    """Export the memories that match the list's filters; a search text is ignored."""
    query = request.GET.copy()
    format: Format = "csv" if query.pop("format", [""])[-1] == "csv" else "jsonl"
    try:
        filters = filters_in(query)
    except Invalid:
        return redirect(list_url(query))
    name = f"{scope.instance.slug}-{timezone.localdate():%Y-%m-%d}.{format}"
    return download(partial(export, scope, filters, format), name=name, content_type=CONTENT_TYPES[format])


@require_http_methods(["GET", "POST"])
@about_instance
def memory_import(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    error = ""
    if request.method == "POST":
        file = request.FILES.get("file")
        try:
            format = uploads.format_named(request.POST.get("format", ""))
            if file is None:
                raise Invalid({"file": ["Choose a file first."]})
            name = file.name or "file"
            job = uploads.keep_upload(scope, file, name=name, format=format, dry_run=True, may_confirm=True)
        except Problem as problem:
            error = problem.reason if isinstance(problem, Invalid) else problem.detail
        else:
            uploads.start(scope, job)
            return redirect(_url(scope, job))
    return render(request, "memories/import.html", {"formats": FORMATS, "error": error})


@require_GET
@about_instance
def memory_import_job(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    job = uploads.find_import(scope, id)
    report = job.payload.get("report")
    context = {
        "job": job,
        "report": report,
        "format": dict(FORMATS).get(report.get("format")) if report else None,
        "is_dry_run": job.payload.get("dryRun", False),
        "is_going_on": job.state in Job.UNFINISHED,
        "percent": job.done * 100 // job.total if job.total else 0,
    }
    return render_part(request, "memories/import_job.html", "state", context)


@require_POST
@about_instance
def memory_import_confirm(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    try:
        job = uploads.confirm(scope, id)
    except Conflict as problem:
        messages.error(request, problem.detail)
        return redirect(f"/memory/import/{id}?instance={scope.instance.slug}")
    return redirect(_url(scope, job))


@require_POST
@about_instance
def memory_import_discard(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    uploads.discard(scope, id)
    messages.success(request, "The file was removed. Nothing was imported.")
    return redirect(f"/memory/import?instance={scope.instance.slug}")


def _url(scope: Scope, job: Job) -> str:
    return f"/memory/import/{job.id}?instance={scope.instance.slug}"
