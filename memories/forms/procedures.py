"""The form of a procedure, whose steps can be rearranged. `memories.procedures` validates what it collects."""

from typing import Any, TypeVar

from django import forms
from django.http import QueryDict

from memories.procedures.store import MAX_NAME, MAX_STEPS, MAX_TRIGGER
from memoryconsole.errors import Invalid
from memoryconsole.forms import add_problem
from memoryconsole.inputs import Input, read, whole_number

T = TypeVar("T", bound=Input)


class ProcedureForm(forms.Form):
    """A name, a trigger and any number of steps."""

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
        """Validate the form without its empty steps; on failure add the errors to the fields and return None."""
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
        """Carry out the action of a button: add, remove or move a step. Return the number of the step to focus."""
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
