"""/audit: who did what to which memories, and when."""

from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

from django.http import HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_GET

from accounts.access import Scope
from accounts.pages import ConsoleRequest, about_instance, render_part
from memories.audit_log import AuditFilters, Entries, Format, export, known_values, list_entries
from memories.filters import readable
from memories.forms.filtering import in_readers_zone
from memories.transfer.exporting import CONTENT_TYPES
from memoryconsole.downloading import download
from memoryconsole.errors import Invalid
from memoryconsole.inputs import read

SHOWN = 50
IDS_SHOWN = 3
MOMENTS = ("createdAfter", "createdBefore")
FILTERS = ("actor", "action", "memoryId", *MOMENTS)
ACTIONS = {
    "created": "Created",
    "changed": "Changed",
    "restored": "Restored an earlier version",
    "superseded": "Superseded",
    "deleted": "Deleted",
    "expired": "Purged after expiry",
    "forgotten": "Forgot a person",
    "read_private": "Read a private memory",
}


@require_GET
@about_instance
def audit_list(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    values = _filters_in(request.GET)
    try:
        found = list_entries(scope, _read(values), limit=SHOWN, cursor=request.GET.get("cursor", ""), ids=IDS_SHOWN)
        invalid = None
    except Invalid as problem:
        found, invalid = Entries([], None), problem
    context = {
        "found": found,
        "given": values,
        "invalid": invalid,
        "is_first": not request.GET.get("cursor"),
        "there": _still_readable(scope, found),
        "actions": {name: _title(name) for name in known_values(scope, "action")},
        "actors": known_values(scope, "actor"),
        "query": _query(scope, values),
    }
    return render_part(request, "memories/audit.html", "entries", context)


@require_GET
@about_instance
def audit_export(request: ConsoleRequest, scope: Scope) -> HttpResponseBase:
    values = _filters_in(request.GET)
    try:
        filters = _read(values)
    except Invalid:
        return redirect(f"/audit?{_query(scope, values)}")
    format: Format = "jsonl" if request.GET.get("format") == "jsonl" else "csv"
    name = f"{scope.instance.slug}-audit-{timezone.localdate():%Y-%m-%d}.{format}"
    return download(partial(export, scope, filters, format), name=name, content_type=CONTENT_TYPES[format])


def _title(action: str) -> str:
    return ACTIONS.get(action, action.replace("_", " ").capitalize())


def _filters_in(query: QueryDict) -> dict[str, str]:
    return {name: value for name in FILTERS if (value := query.get(name, "").strip())}


def _read(values: Mapping[str, Any]) -> AuditFilters:
    return read(AuditFilters, in_readers_zone(dict(values), MOMENTS))


def _query(scope: Scope, values: Mapping[str, str]) -> str:
    query = QueryDict(mutable=True)
    query.update({"instance": scope.instance.slug, **values})
    return query.urlencode()


def _still_readable(scope: Scope, found: Entries) -> set[UUID]:
    """The memories in these entries that the reader can still open."""
    ids = {id for entry in found.entries for id in entry.memory_ids}
    return set(readable(scope).filter(id__in=ids).values_list("id", flat=True)) if ids else set()
