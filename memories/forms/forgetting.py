"""The forms for forgetting a person."""

from typing import Any

from django import forms


class OwnerForm(forms.Form):
    owner = forms.CharField(
        label="Id of the person",
        max_length=200,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
        help_text="As the assistant's engine sends it: the owner of memories, the user of conversations.",
    )


class ForgetForm(forms.Form):
    confirm = forms.CharField(
        label="Type the id to confirm",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, owner: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.owner = owner

    def clean_confirm(self) -> str:
        typed: str = self.cleaned_data["confirm"]
        if typed != self.owner:
            raise forms.ValidationError(f"This is not “{self.owner}”. Nothing was forgotten.")
        return typed
