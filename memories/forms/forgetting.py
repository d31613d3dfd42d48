"""The form that asks whom to forget."""

from django import forms

from memoryconsole.forms import verbatim


class OwnerForm(forms.Form):
    owner = forms.CharField(
        label="Id of the person",
        max_length=200,
        widget=verbatim(),
        help_text="As the assistant's engine sends it: the owner of memories, the user of conversations.",
    )
