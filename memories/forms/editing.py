"""The form of a memory. `memories.draft` validates what it collects."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.formats import date_format

from conversations.models import Conversation
from memories.draft import MemoryChanges, MemoryDraft
from memories.forms.fields import (
    IMPORTANCE,
    MomentField,
    Scale,
    SuggestedInput,
    TagEditor,
    TagsField,
    read_or_add_errors,
)
from memories.models import MAX_CONTENT, Memory
from memories.tags import KnownTag
from memories.vocabulary import Category, Role, Visibility
from memoryconsole.local_time import local_time

NEVER, ON_DATE = "never", "date"
LIFETIMES = {"1": "In a day", "7": "In a week", "30": "In 30 days"}


class MemoryForm(forms.Form):
    content = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text=f"One thing worth remembering, understandable on its own. Up to {MAX_CONTENT:,} characters.",
    )
    # No ChoiceField, because `memories.draft` also accepts aliases.
    category = forms.CharField(widget=forms.Select(choices=Category.choices), initial=Category.GENERAL)
    importance = forms.ChoiceField(
        choices=IMPORTANCE, initial="5", widget=Scale, help_text="1 is trivia, 10 must never be forgotten."
    )
    source_conversation_id = forms.CharField(
        label="Source conversation", required=False, widget=SuggestedInput, help_text="The id of a conversation."
    )

    role = forms.CharField(
        widget=forms.Select(choices=Role.choices),
        initial=Role.CONTEXT,
        help_text="How prompts use it: reference and historical are only found by search.",
    )
    key = forms.CharField(required=False, help_text="A short name. Only one active memory can have it.")
    tags = TagsField(required=False, help_text="Several at once are separated by commas.")
    summary = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Used in prompts when the content does not fit. Correct it together with the content.",
    )
    visibility = forms.ChoiceField(choices=Visibility.choices, initial=Visibility.INSTANCE)
    owner = forms.CharField(required=False, help_text="The end user it belongs to; needed for private memories.")
    occurred_at = MomentField(label="Happened at", required=False)
    expires_in = forms.ChoiceField(
        label="Forget it",
        choices=[(NEVER, "Never"), *LIFETIMES.items(), (ON_DATE, "On a date")],
        initial=NEVER,
        required=False,
        help_text="From then on nobody can read it, and soon after it is deleted.",
    )
    expires_at = MomentField(label="On this date", required=False)
    channel = forms.CharField(required=False, help_text="For example chat, email or phone.")
    confidence = forms.CharField(
        required=False, initial="1", widget=forms.NumberInput(attrs={"min": 0, "max": 1, "step": 0.05})
    )
    pinned = forms.BooleanField(required=False, help_text="Pinned memories come first, in recall and in the list.")
    supersede_reason = forms.CharField(
        label="Why", required=False, help_text="Kept in the history with the earlier version."
    )
    is_minor = forms.BooleanField(
        label="Minor correction", required=False, help_text="A typo or the wording: what it means stays the same."
    )

    MORE = (
        "role",
        "key",
        "tags",
        "summary",
        "visibility",
        "owner",
        "occurred_at",
        "expires_in",
        "expires_at",
        "channel",
        "confidence",
        "pinned",
    )

    def __init__(
        self, *args: Any, conversations: Sequence[Conversation] = (), tags: Sequence[KnownTag] = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        widget, editor = self.fields["source_conversation_id"].widget, self.fields["tags"].widget
        assert isinstance(widget, SuggestedInput)
        assert isinstance(editor, TagEditor)
        widget.suggestions = [(str(conversation.id), str(conversation)) for conversation in conversations]
        editor.suggestions = tags

    @property
    def more(self) -> list[forms.BoundField]:
        return [self[name] for name in self.MORE]

    @property
    def more_is_needed(self) -> bool:
        """Whether to open the further fields: if one has an error, or if there is a summary to be corrected too."""
        return bool(self["summary"].value()) or any(self[name].errors for name in self.MORE)

    def stored_otherwise(self) -> list[tuple[str, str]]:
        """The memory's current values of the fields, besides the text, that saving this form would change."""
        names = [
            name
            for name in self.changed_data
            if name in {"category", "source_conversation_id", "importance", *self.MORE}
        ]
        return [(str(self[name].label), _shown(self.fields[name], self.initial[name])) for name in names]

    def draft(self) -> MemoryDraft | None:
        """The new memory, or None and errors at the fields."""
        return read_or_add_errors(self, MemoryDraft, {**self._collected(), "dedupe": "reject"})

    def changes(self) -> MemoryChanges | None:
        """Only the changed fields, so that saving does not undo somebody else's change of another field."""
        collected = self._collected()
        names = ["expires_at" if name == "expires_in" else name for name in self.changed_data]
        changed = {name: collected[name] for name in names if name in collected}
        # The form shows the summary, so it is meant for the new text too. `store.apply` clears one that is not sent.
        if "content" in changed and collected["summary"]:
            changed["summary"] = collected["summary"]
        if self.cleaned_data["is_minor"]:
            changed["supersede_reason"] = collected["supersede_reason"] or "minor correction"
        return read_or_add_errors(self, MemoryChanges, changed)

    def _collected(self) -> dict[str, Any]:
        """The form's values, for `memories.draft`."""
        values = {name: value for name, value in self.cleaned_data.items() if name != "is_minor"}
        values["expires_at"] = self._expiry(values.pop("expires_in", ""), values.get("expires_at"))
        values["importance"] = int(values["importance"]) if values.get("importance") else None
        values["source_conversation_id"] = values.get("source_conversation_id") or None
        values["confidence"] = values.get("confidence") or 1.0
        return values

    def clean(self) -> None:
        chosen, date = self.cleaned_data.get("expires_in"), self.cleaned_data.get("expires_at")
        if chosen == ON_DATE and not date and "expires_at" not in self.errors:
            self.add_error("expires_at", "Say on which day and at what time.")
        if date and "expires_at" in self.changed_data and date <= timezone.now():
            self.add_error("expires_at", "This is in the past.")

    def _expiry(self, chosen: str, date: datetime | None) -> datetime | None:
        """A date that was just entered counts, even if the choice above it was not changed."""
        if chosen in LIFETIMES:
            return timezone.now() + timedelta(days=int(chosen))
        just_entered = "expires_at" in self.changed_data and "expires_in" not in self.changed_data
        return date if chosen in (ON_DATE, "") or just_entered else None


def _shown(field: forms.Field, value: Any) -> str:
    if isinstance(field, forms.BooleanField):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return date_format(local_time(value), "j M Y, H:i")
    if isinstance(value, list):
        value = ", ".join(value)
    return str(dict(getattr(field.widget, "choices", [])).get(value, value) or "none")


def _minute(moment: datetime | None) -> datetime | None:
    """The time without seconds, as the browser shows and sends it, so that it does not count as changed."""
    return moment.replace(second=0, microsecond=0) if moment else None


def values_of(memory: Memory) -> dict[str, Any]:
    """A memory as the form's initial values."""
    values = {name: getattr(memory, name) for name in MemoryForm.base_fields if hasattr(memory, name)}
    return {
        **values,
        "occurred_at": _minute(memory.occurred_at),
        "expires_in": ON_DATE if memory.expires_at else NEVER,
        "expires_at": _minute(memory.expires_at),
        "importance": str(memory.importance),
        "confidence": f"{memory.confidence:g}",
        "source_conversation_id": str(memory.source_conversation_id or ""),
        "supersede_reason": "",
    }
