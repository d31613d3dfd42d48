"""/memory/<id>/attachments: attach a file to a memory, download it, remove it."""

from functools import partial
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_POST

from accounts.access import Scope
from accounts.pages import ConsoleRequest, about_instance
from memories.attachments import attach, delete_attachment, find_attachment, parts_of_file
from memories.store import find_memory
from memoryconsole.downloading import download
from memoryconsole.errors import Invalid, TooLarge


@require_POST
@about_instance
def attachment_new(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    find_memory(scope, id)
    file = request.FILES.get("file")
    if file is None:
        messages.warning(request, "Choose a file first.")
        return _back(request, id, part="")
    try:
        attachment = attach(scope, id, file, name=file.name or "")
    except Invalid as problem:
        messages.error(request, problem.reason)
    except TooLarge as problem:
        messages.error(request, problem.detail)
    else:
        messages.success(request, f"Attached “{attachment.name}”.")
        return _back(request, id)
    return _back(request, id, part="")


@require_GET
@about_instance
def attachment_download(request: ConsoleRequest, scope: Scope, id: UUID, attachment_id: UUID) -> HttpResponseBase:
    attachment = find_attachment(scope, id, attachment_id)
    parts = partial(parts_of_file, attachment)
    return download(parts, name=attachment.name, content_type=attachment.content_type)


@require_POST
@about_instance
def attachment_delete(request: ConsoleRequest, scope: Scope, id: UUID, attachment_id: UUID) -> HttpResponse:
    name = find_attachment(scope, id, attachment_id).name
    delete_attachment(scope, id, attachment_id)
    messages.success(request, f"Removed “{name}”.")
    return _back(request, id)


def _back(request: ConsoleRequest, id: UUID, *, part: str = "#attachments") -> HttpResponse:
    """Back to the memory: to its attachments, or to the top of the page, where errors are shown."""
    return redirect(f"/memory/{id}?{request.GET.urlencode()}{part}")
