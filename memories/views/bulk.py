"""/memory/bulk: change many memories at once, and confirm before many are deleted."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from accounts.access import Scope
from accounts.pages import ConsoleRequest, about_instance, ticked
from memories.audit import note_private_reads
from memories.changing_many import change_many
from memories.deletion import delete_matching, delete_memories, parts_of, stale_expectation
from memories.draft import MemoryChanges
from memories.filters import Filters, readable
from memories.forms.fields import typed_tags
from memories.listing import ids_matching
from memories.views.editing import read_tags, receipt_in_words
from memories.views.listing import filters_in, list_url, same_url
from memories.views.searching import text_in
from memoryconsole.counting import counted
from memoryconsole.errors import Conflict, Invalid, NotFound
from memoryconsole.inputs import read, whole_number

SHOWN = 100
NOTHING_TICKED = "Nothing is selected. Tick the memories first."
NOTHING_CHOSEN = "Choose what to do with the selected memories."


@dataclass(frozen=True, slots=True)
class Selection:
    """Single memories, or everything that matches the filters; then `expected` is the number the reader saw."""

    ids: list[UUID]
    filters: Filters | None = None
    expected: int = 0

    @property
    def n(self) -> int:
        return self.expected if self.filters is not None else len(self.ids)


@require_POST
@about_instance
def memory_bulk(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    selection = _selection(request)
    action = request.POST.get("action", "")
    if selection.n == 0:
        messages.warning(request, NOTHING_TICKED)
    elif action == "delete":
        return _ask(request, scope, selection)
    else:
        _change(request, scope, selection, action)
    return redirect(_back(request, selection))


@require_POST
@about_instance
def memory_bulk_delete(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    selection = _selection(request)
    try:
        if selection.filters is not None:
            receipt = delete_matching(scope, selection.filters, expected=selection.expected)
        else:
            receipt = delete_memories(scope, selection.ids)
    except (Conflict, NotFound) as problem:
        messages.error(request, f"{problem.detail} Look at the list again.")
    else:
        messages.success(request, receipt_in_words(receipt))
    return redirect(_back(request, selection))


def _ask(request: ConsoleRequest, scope: Scope, selection: Selection) -> HttpResponse:
    ids = _existing(scope, selection)
    if gone := _gone(selection, ids):
        messages.warning(request, gone)
    if not ids:
        return redirect(_back(request, selection))
    shown = list(readable(scope).filter(id__in=ids[:SHOWN]).order_by("-id"))
    note_private_reads(scope, shown)
    context = {
        "memories": shown,
        "n": len(ids),
        "not_shown": max(0, len(ids) - SHOWN),
        "parts": parts_of(scope, ids),
        "ids": [] if selection.filters is not None else ids,
        "is_everything": selection.filters is not None,
        "list_url": _back(request, selection),
        "query": request.GET.urlencode(),
    }
    return render(request, "memories/bulk_delete.html", context)


def _change(request: ConsoleRequest, scope: Scope, selection: Selection, action: str) -> None:
    try:
        fields, tags = _wanted(request, action)
        ids = _existing(scope, selection)
        if selection.filters is not None and len(ids) != selection.expected:
            raise stale_expectation(len(ids), selection.expected, "Nothing was changed.")
        changed = change_many(scope, ids, fields, **tags)
    except (Invalid, Conflict) as problem:
        messages.error(request, problem.detail)
    else:
        kept = len(ids) - changed
        note = f" {kept:,} needed no change." if kept else ""
        gone = _gone(selection, ids)
        messages.success(
            request, f"Changed {counted(changed, 'memory', 'memories')}.{note}{' ' + gone if gone else ''}"
        )


def _existing(scope: Scope, selection: Selection) -> list[UUID]:
    """The selected memories that still exist, newest first."""
    if selection.filters is not None:
        return ids_matching(scope, selection.filters)
    rows = readable(scope).filter(id__in=selection.ids)
    return list(rows.order_by("-id").values_list("id", flat=True))


def _gone(selection: Selection, existing: list[UUID]) -> str:
    n = len(set(selection.ids)) - len(existing)
    return f"{n:,} of the selected {'is' if n == 1 else 'are'} not there any more." if n > 0 else ""


def _wanted(request: ConsoleRequest, action: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """The fields and the tags to change, validated."""
    value = request.POST.get(action, "")
    if action in {"pin", "unpin"}:
        return {"pinned": action == "pin"}, {}
    if action in {"tag", "untag"}:
        typed = request.POST.get("tag", "")
        # The API accepts tags with commas, so what was typed may also be a single tag.
        tags = read_tags(typed_tags(typed) if action == "tag" else [typed, *typed_tags(typed)])
        if not tags:
            raise Invalid({"tag": [f"Enter the tag to {'add' if action == 'tag' else 'remove'}."]})
        return {}, {"add_tags" if action == "tag" else "remove_tags": tags}
    if action in {"category", "importance", "role"}:
        return read(MemoryChanges, {action: value}).changed_fields(), {}
    raise Invalid({"action": [NOTHING_CHOSEN]})


def _back(request: ConsoleRequest, selection: Selection) -> str:
    """The list: the same page of it, or the first one if everything was selected."""
    return list_url(request.GET) if selection.filters is not None else same_url(request.GET)


def _selection(request: ConsoleRequest) -> Selection:
    # Search results can only be selected one by one: the filters would match more than the hits.
    if request.POST.get("all") and not text_in(request.GET):
        return Selection([], filters_in(request.GET), whole_number(request.POST.get("expected", "")) or 0)
    return Selection(ticked(request))
