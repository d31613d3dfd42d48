"""What forms share: choices known only when asked, and what the domain found wrong shown at the field."""

from collections.abc import Sequence
from typing import cast

from django import forms

from memoryconsole.errors import Invalid
from memoryconsole.inputs import snake_name


def add_problem(form: forms.BaseForm, problem: Invalid) -> None:
    for public_name, reasons in problem.errors.items():
        name = snake_name(public_name.split(".")[0])
        form.add_error(name if name in form.fields else None, reasons)


def set_choices(form: forms.BaseForm, name: str, choices: Sequence[tuple[str, str]]) -> None:
    cast(forms.ChoiceField, form.fields[name]).choices = choices
