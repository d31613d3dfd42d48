"""What several forms share."""

from collections.abc import Sequence
from typing import cast

from django import forms
from django.http import QueryDict

from memoryconsole.errors import Invalid
from memoryconsole.inputs import snake_name


def add_problem(form: forms.BaseForm, problem: Invalid) -> None:
    """Show what the domain refused at the fields it is about."""
    for public_name, reasons in problem.errors.items():
        name = snake_name(public_name.split(".")[0])
        form.add_error(name if name in form.fields else None, reasons)


def ask_again(form: forms.BaseForm, secret: str) -> None:
    """Ask for a secret again when another field is wrong, because it is not sent back to the browser."""
    if form.is_bound and form.data.get(secret) and secret not in form.errors:
        form.add_error(secret, "Enter it again: it is not kept while something else is put right.")


def set_choices(form: forms.BaseForm, name: str, choices: Sequence[tuple[str, str]]) -> None:
    cast(forms.ChoiceField, form.fields[name]).choices = choices


def verbatim() -> forms.TextInput:
    """An input for ids and the like, which browsers should not complete or correct."""
    return forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"})


class ConfirmForm(forms.Form):
    """Confirms that something is deleted for good: its name has to be typed."""

    confirm = forms.CharField(widget=verbatim())

    def __init__(self, data: QueryDict | None, *, name: str, is_its: str, otherwise: str) -> None:
        super().__init__(data)
        self.fields["confirm"].label = f"Type the {is_its} to confirm"
        self.name, self.otherwise = name, otherwise

    def clean_confirm(self) -> str:
        typed: str = self.cleaned_data["confirm"]
        if typed != self.name:
            raise forms.ValidationError(f"This is not “{self.name}”. {self.otherwise}")
        return typed
