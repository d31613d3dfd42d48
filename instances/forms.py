"""The forms of instances. The rules are in `instances.store`."""

import json
from typing import Any, cast

from django import forms
from django.db import models
from django.http import QueryDict

from instances.models import Embedder, Instance, bounds_of
from instances.store import InstanceChanges, InstanceDraft, languages
from memoryconsole.errors import Invalid
from memoryconsole.forms import set_choices, verbatim
from memoryconsole.inputs import read


class NewInstanceForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="What people call this assistant.",
    )
    slug = forms.CharField(
        required=False,
        max_length=64,
        widget=verbatim(),
        help_text="Programs know it by this; it cannot be changed later. Leave empty to have it made from the name.",
    )
    team = forms.CharField(
        required=False, max_length=100, help_text="Made if it is missing; “default” when left empty."
    )
    organisation = forms.CharField(
        required=False, max_length=100, help_text="Made if it is missing; “default” when left empty."
    )

    def suggest(self, slug: str) -> None:
        self.fields["slug"].widget.attrs["placeholder"] = slug

    def draft(self, slug: str) -> InstanceDraft:
        given = {name: value for name, value in self.cleaned_data.items() if value}
        if "slug" not in given and not slug:
            raise Invalid({"slug": ["None can be made of this name. Enter one."]})
        return read(InstanceDraft, {**given, "slug": given.get("slug", slug)})


def _number(name: str, label: str, help_text: str) -> forms.Field:
    """A field for a numeric column, with the column's limits and default in its help text."""
    column = cast("models.Field[float, float]", Instance._meta.get_field(name))
    low, high = bounds_of(name)
    is_float = isinstance(column, models.FloatField)
    widget = forms.NumberInput(attrs={"min": low, "max": high, "step": 0.01 if is_float else 1})
    kind = forms.FloatField if is_float else forms.IntegerField
    limits = f"{low:,} to {high:,}; the default is {column.default:,}."
    return kind(label=label, widget=widget, help_text=f"{help_text} {limits}")


class SettingsForm(forms.Form):
    name = forms.CharField(max_length=100)
    team = forms.CharField(max_length=100, help_text="Made if it is missing.")
    organisation = forms.CharField(max_length=100, help_text="Made if it is missing.")
    language = forms.ChoiceField(
        help_text="The language of most memories: keyword search then also finds other forms of a word. "
        "The default is english; simple takes words as they are."
    )
    memory_enabled = forms.BooleanField(
        label="Memory is on",
        required=False,
        help_text="Off: nothing is extracted from conversations and recall answers with nothing. "
        "What is remembered stays. The default is on.",
    )
    embedder = forms.ChoiceField(
        label="Embeddings by",
        choices=Embedder.choices,
        help_text="What makes vectors of texts, so that search finds meaning and not only words. After a change "
        "all vectors are made anew in the background; search uses the old ones until then. The default is OpenAI.",
    )

    openai_key = forms.CharField(
        label="OpenAI key",
        required=False,
        max_length=500,
        widget=forms.PasswordInput(attrs={"id": "openai-key", "autocomplete": "off", "placeholder": "sk-…"}),
    )

    extraction_messages = _number(
        "extraction_messages", "Messages read at a time", "How many of the latest messages are looked at for new facts."
    )
    extraction_limit = _number(
        "extraction_limit",
        "Memories per extraction",
        "At most this many facts are kept from one look at a conversation.",
    )
    dedupe_threshold = _number(
        "dedupe_threshold",
        "Same fact from",
        "A new fact at least this similar to a memory updates it instead of being added beside it.",
    )
    quiet_minutes = _number(
        "quiet_minutes", "Quiet after minutes", "A conversation with no message for this long counts as finished."
    )

    recall_limit = _number("recall_limit", "Memories per recall", "At most this many found memories go into a prompt.")
    recall_threshold = _number(
        "recall_threshold", "Similarity from", "Memories less similar to the question than this are left out."
    )
    recall_token_budget = _number(
        "recall_token_budget", "Token budget", "The memories put into a prompt together take no more tokens than this."
    )
    recall_half_life_days = _number(
        "recall_half_life_days",
        "Half-life in days",
        "After so many days a memory counts half as much for being recent. Identities and lessons do not age.",
    )
    recall_mmr_lambda = _number(
        "recall_mmr_lambda",
        "Relevance against variety",
        "1 takes the best matches even if they repeat each other; lower values prefer variety.",
    )
    recall_injected_cap = _number(
        "recall_injected_cap",
        "Always included",
        "At most this many identities, lessons, decisions and contexts are in every prompt, whatever the question.",
    )
    recall_log_days = _number(
        "recall_log_days",
        "Keep the recall log for days",
        "How long it can be explained what was recalled and why. 0 keeps none.",
    )

    auto_approve_importance = _number(
        "auto_approve_importance",
        "Approve by itself from importance",
        "Extracted facts less important than this wait for a person. 1 approves everything, 11 nothing.",
    )

    EXTRACTION = ("extraction_messages", "extraction_limit", "dedupe_threshold", "quiet_minutes")
    RECALL = (
        "recall_limit",
        "recall_threshold",
        "recall_token_budget",
        "recall_half_life_days",
        "recall_mmr_lambda",
        "recall_injected_cap",
        "recall_log_days",
    )

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        instance: Instance,
        is_superadmin: bool,
        typed: dict[str, Any] | None = None,
    ) -> None:
        values = {name: getattr(instance, name) for name in self.base_fields if hasattr(instance, name)}
        values |= {"team": instance.team.name, "organisation": instance.team.organisation.name, "openai_key": ""}
        values |= _shown(data)
        super().__init__(data, initial=values | (typed or {}), auto_id="%s")
        self.shown = json.dumps(values)
        set_choices(self, "language", [(name, name) for name in languages()])
        if instance.openai_key_last4:
            self.fields["openai_key"].label = "Replace the key"
        if not is_superadmin:
            del self.fields["team"], self.fields["organisation"]

    @property
    def extraction(self) -> list[forms.BoundField]:
        return [self[name] for name in self.EXTRACTION]

    @property
    def recall(self) -> list[forms.BoundField]:
        return [self[name] for name in self.RECALL]

    def changes(self) -> InstanceChanges:
        """Only what was changed on the page, so that saving it does not undo what somebody else changed meanwhile."""
        return read(InstanceChanges, {name: self.cleaned_data[name] for name in self.changed_data})

    def as_typed(self) -> dict[str, Any]:
        """The changed fields as they were typed, valid or not, to fill another form with. A key is not sent back."""
        return {name: self[name].value() for name in self.changed_data if name != "openai_key"}


def _shown(data: QueryDict | None) -> dict[str, Any]:
    """The values the page was rendered with, which the form sends back in a hidden field."""
    try:
        shown = json.loads(data.get("shown", "{}") if data else "{}")
    except ValueError:
        return {}
    return shown if isinstance(shown, dict) else {}
