"""/procedures: list, test, create, edit and delete procedures."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET, require_http_methods

from accounts.access import Scope
from accounts.pages import ConsoleRequest, about_instance, page_number, posted, render_part, seen_in, wants_fragment
from memories.forms.procedures import ProcedureForm
from memories.paging import page_of
from memories.procedures.matching import matches
from memories.procedures.store import (
    MAX_STEP,
    MAX_STEPS,
    MOST_USED,
    ProcedureChanges,
    ProcedureDraft,
    change_procedure,
    create_procedure,
    delete_procedure,
    find_procedure,
    procedures_of,
)
from memories.search.query import MAX_CHARACTERS
from memories.views.searching import keep_history_short
from memoryconsole.errors import Conflict, Invalid

SIZE = 50
TRIED = 5


@require_GET
@about_instance
def procedure_list(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    text = request.GET.get("match", "").replace("\x00", " ").strip()[:MAX_CHARACTERS]
    rows = procedures_of(scope)
    context = {
        "page": page_of(rows, MOST_USED, number=page_number(request), size=SIZE, total=rows.count()),
        "text": text,
        "max_text": MAX_CHARACTERS,
        "matches": matches(scope, text, limit=TRIED) if text else [],
    }
    fragment = f"#{request.htmx.target or 'tested'}" if wants_fragment(request) else ""
    fragment = fragment if fragment in {"", "#tested", "#procedures"} else ""
    response = keep_history_short(request, render(request, f"procedures/list.html{fragment}", context), "match")
    patch_vary_headers(response, ["HX-Request"])
    return response


@require_http_methods(["GET", "POST"])
@about_instance
def procedure_new(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    form = ProcedureForm(posted(request))
    if request.method == "POST" and not _is_saving(request):
        return _rearranged(request, form)
    if request.method == "POST" and (draft := form.read(ProcedureDraft)):
        try:
            procedure = create_procedure(scope, draft)
        except Invalid as problem:
            form.add(problem)
        else:
            fitting = "trigger" if procedure.trigger else "name"
            messages.success(request, f"Saved “{procedure.name}”. It is offered whenever its {fitting} fits.")
            return redirect(f"/procedures?instance={scope.instance.slug}")
    return _shown(request, form)


@require_http_methods(["GET", "POST"])
@about_instance
def procedure_edit(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    procedure = find_procedure(scope, id)
    initial = {"name": procedure.name, "trigger": procedure.trigger}
    form = ProcedureForm(posted(request), steps=procedure.steps, initial=initial)
    is_outdated = False
    if request.method == "POST" and not _is_saving(request):
        return _rearranged(request, form, procedure=procedure)
    if request.method == "POST" and (changes := form.read(ProcedureChanges)):
        try:
            change_procedure(scope, id, changes, seen=seen_in(request))
        except Invalid as problem:
            form.add(problem)
        except Conflict as problem:
            is_outdated = True
            form.add_error(None, problem.detail)
        else:
            messages.success(request, f"Saved “{changes.name}”.")
            return redirect(f"/procedures?instance={scope.instance.slug}")
    return _shown(request, form, procedure=procedure, is_outdated=is_outdated)


@require_http_methods(["GET", "POST"])
@about_instance
def procedure_delete(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    procedure = find_procedure(scope, id)
    if request.method == "POST":
        delete_procedure(scope, id)
        messages.success(request, f"Deleted “{procedure.name}”.")
        return redirect(f"/procedures?instance={scope.instance.slug}")
    return render_part(request, "procedures/delete.html", "question", {"procedure": procedure})


def _is_saving(request: ConsoleRequest) -> bool:
    return request.POST.get("do", "save") == "save"


def _rearranged(request: ConsoleRequest, form: ProcedureForm, **context: Any) -> HttpResponse:
    """The form as typed, with a step added, removed or moved. Nothing is saved."""
    focus = form.rearrange(request.POST.get("do", ""))
    unchecked = ProcedureForm(steps=form.steps, initial={name: form.data.get(name, "") for name in form.fields})
    return _shown(request, unchecked, focus=focus, **context)


def _shown(request: ConsoleRequest, form: ProcedureForm, **context: Any) -> HttpResponse:
    context |= {"form": form, "max_step": MAX_STEP, "may_add": len(form.steps) < MAX_STEPS}
    return render_part(request, "procedures/edit.html", "steps", context)
