"""/procedures: the steps an assistant has learnt, what triggers them, and what would match."""

from typing import Any, TypeVar
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET, require_http_methods

from accounts.access import Scope
from accounts.pages import ConsoleRequest, about_instance, page_number, posted, render_part, seen_in, wants_fragment
from memories.paging import page_of
from memories.procedures.matching import matches
from memories.procedures.store import (
    MAX_NAME,
    MAX_STEP,
    MAX_STEPS,
    MAX_TRIGGER,
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
from memoryconsole.forms import add_problem
from memoryconsole.inputs import Input, read, whole_number

SIZE = 50
TRIED = 5
T = TypeVar("T", bound=Input)


class ProcedureForm(forms.Form):
    """A name, a trigger and any number of steps; what is allowed is decided by `memories.procedures`."""

    name = forms.CharField(
        required=False,
        max_length=MAX_NAME,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="What this is, in a few words. Each name is there once.",
    )
    trigger = forms.CharField(
        required=False,
        max_length=MAX_TRIGGER,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="When to follow it, in the words a user would use: “wants their money back, asks for a refund”.",
    )

    def __init__(self, data: QueryDict | None = None, *, steps: list[str] | None = None, **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        self.steps = data.getlist("steps") if data is not None else (steps or [""])
        self.step_errors: dict[int, str] = {}

    def read(self, model: type[T]) -> T | None:
        """What was written, or None with the reasons at the fields. Empty steps are left out."""
        self.steps = [step for step in self.steps if step.strip()] or [""]
        steps = [step for step in self.steps if step]
        if not self.is_valid():
            return None
        try:
            return read(model, {**self.cleaned_data, "steps": steps})
        except Invalid as problem:
            self.add(problem)
            return None

    def add(self, problem: Invalid) -> None:
        for name, reasons in problem.errors.items():
            field, _, number = name.partition(".")
            if field == "steps":
                reason = "Write at least one step." if not number and self.steps == [""] else reasons[0]
                self.step_errors[int(number) if number.isdecimal() else 0] = reason
            else:
                add_problem(self, Invalid({name: reasons}))

    @property
    def numbered_steps(self) -> list[tuple[int, str, str]]:
        return [(number, step, self.step_errors.get(number - 1, "")) for number, step in enumerate(self.steps, 1)]

    def rearrange(self, action: str) -> int:
        """Do what a button beside a step asks for; the number of the step to go on with."""
        name, _, number = action.partition("-")
        if name == "add":
            self.steps = [*self.steps, ""][:MAX_STEPS]
            return len(self.steps)
        typed = whole_number(number) or 1
        at = typed - 1 if typed <= len(self.steps) else 0
        if name == "remove":
            del self.steps[at : at + 1]
            self.steps = self.steps or [""]
            return min(at + 1, len(self.steps))
        to = min(max(at + (1 if name == "down" else -1), 0), len(self.steps) - 1)
        self.steps.insert(to, self.steps.pop(at))
        return to + 1


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
    """The form as it was written, with a step more or less, or in another place; nothing is saved."""
    focus = form.rearrange(request.POST.get("do", ""))
    unchecked = ProcedureForm(steps=form.steps, initial={name: form.data.get(name, "") for name in form.fields})
    return _shown(request, unchecked, focus=focus, **context)


def _shown(request: ConsoleRequest, form: ProcedureForm, **context: Any) -> HttpResponse:
    context |= {"form": form, "max_step": MAX_STEP, "may_add": len(form.steps) < MAX_STEPS}
    return render_part(request, "procedures/edit.html", "steps", context)
