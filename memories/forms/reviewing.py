"""The forms of the inbox and of duplicates."""

from django import forms

from memories.draft import MemoryChanges
from memories.forms.fields import IMPORTANCE, Scale, read_or_add_errors
from memories.vocabulary import Category


class ReviewForm(forms.Form):
    """The fields that are most often corrected before a memory is approved."""

    content = forms.CharField(required=False, strip=False, widget=forms.Textarea(attrs={"rows": 5}))
    category = forms.ChoiceField(choices=Category.choices)
    importance = forms.ChoiceField(choices=IMPORTANCE, widget=Scale)

    def changes(self) -> MemoryChanges | None:
        if not self.is_valid():
            return None
        changed = {name: self.cleaned_data[name] for name in self.changed_data}
        return read_or_add_errors(self, MemoryChanges, {**changed, "supersede_reason": "corrected in review"})


class PairingForm(forms.Form):
    """How near two memories must be to be shown as a pair."""

    threshold = forms.FloatField(
        min_value=0.5, max_value=1, widget=forms.NumberInput(attrs={"min": 0.5, "max": 1, "step": 0.01})
    )


class MergeForm(forms.Form):
    """One text for two memories."""

    content = forms.CharField(
        label="What it will say", required=False, strip=False, widget=forms.Textarea(attrs={"rows": 5})
    )

    def text(self) -> str | None:
        if not self.is_valid():
            return None
        changes = read_or_add_errors(self, MemoryChanges, {"content": self.cleaned_data["content"]})
        return changes.content if changes else None
