"""The forms of the Memory screen. They show and collect; what is allowed is decided by `memories.draft`."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from django import forms
from django.http import QueryDict
from django.utils import timezone
from django.utils.formats import date_format

from conversations.models import Conversation
from memories.draft import MemoryChanges, MemoryDraft
from memories.filters import Filters
from memories.models import MAX_CONTENT, Memory
from memories.tags import KnownTag
from memories.vocabulary import Category, EmbeddingState, Role, Visibility
from memoryconsole.errors import Invalid
from memoryconsole.forms import add_problem
from memoryconsole.inputs import Input, read
from memoryconsole.local_time import local_time

IMPORTANCE = [(str(n), str(n)) for n in range(1, 11)]
ANY = [("", "Any")]
T = TypeVar("T", bound=Input)


class Scale(forms.RadioSelect):
    """Importance as ten buttons."""

    template_name = "memories/_scale.html"


class LocalMoment(forms.DateTimeInput):
    """A date and time in the reader's zone."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M")


class MomentField(forms.DateTimeField):
    """What the reader's clock shows; where it shows a time twice, as summer time ends, a new one means the first."""

    widget = LocalMoment

    def prepare_value(self, value: Any) -> Any:
        return _on_clock(value) if isinstance(value, datetime) else value

    def to_python(self, value: Any) -> datetime | None:
        try:
            return super().to_python(value)
        except forms.ValidationError as error:
            if error.code != "ambiguous_timezone" or not error.params:
                raise
            return _first_time(error.params["datetime"])

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compared as it is shown: which of two times it is, nobody can see and nobody has changed."""
        try:
            return _on_clock(initial) != _on_clock(self.to_python(data))
        except forms.ValidationError:
            return True


def _first_time(on_clock: datetime) -> datetime:
    moment = timezone.make_aware(on_clock)
    if _on_clock(moment.astimezone(UTC)) != on_clock:
        raise forms.ValidationError("The clocks are put forward over this time. Choose an earlier or a later one.")
    return moment


def _on_clock(moment: datetime | None) -> datetime | None:
    return local_time(moment).replace(tzinfo=None) if moment else None


class SuggestedInput(forms.TextInput):
    """A text input with suggestions; free text stays possible."""

    template_name = "memories/_suggested.html"
    suggestions: Sequence[tuple[str, str]] = ()

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        context["suggestions"] = self.suggestions
        if self.suggestions:
            context["widget"]["attrs"]["list"] = f"{context['widget']['attrs']['id']}_suggestions"
        return context


class TagEditor(forms.Widget):
    """Each tag is a box that can be unticked, and beside them is room for more. Works without scripts."""

    template_name = "memories/_tags.html"
    suggestions: Sequence[KnownTag] = ()

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        return {**super().get_context(name, None, attrs), "tags": value or [], "suggestions": self.suggestions}

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        """The boxes that are ticked and what was typed, at commas."""
        typed = [tag.strip() for tag in data.get(name, "").split(",")]
        return list(dict.fromkeys(tag for tag in [*data.getlist(f"kept_{name}"), *typed] if tag))


class TagsField(forms.Field):
    widget = TagEditor

    def has_changed(self, initial: Any, data: Any) -> bool:
        return list(initial or []) != list(data or [])


NEVER, ON_DATE = "never", "date"
LIFETIMES = {"1": "In a day", "7": "In a week", "30": "In 30 days"}


class MemoryForm(forms.Form):
    content = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text=f"One thing worth remembering, understandable on its own. Up to {MAX_CONTENT:,} characters.",
    )
    # `memories.draft` knows these words and their aliases.
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
        """A summary must be seen by whoever corrects the text it is of."""
        return bool(self["summary"].value()) or any(self[name].errors for name in self.MORE)

    def stored_otherwise(self) -> list[tuple[str, str]]:
        """What the memory says besides its text where this form, if it were saved, would say something else."""
        names = [
            name
            for name in self.changed_data
            if name in {"category", "source_conversation_id", "importance", *self.MORE}
        ]
        return [(str(self[name].label), _shown(self.fields[name], self.initial[name])) for name in names]

    def draft(self) -> MemoryDraft | None:
        """The new memory, or None with the reasons at the fields."""
        return self._read(MemoryDraft, {**self._collected(), "dedupe": "reject"})

    def changes(self) -> MemoryChanges | None:
        """Only what was changed, so that a save does not undo somebody else's change of another field."""
        collected = self._collected()
        names = ["expires_at" if name == "expires_in" else name for name in self.changed_data]
        changed = {name: collected[name] for name in names if name in collected}
        # The form shows both, so this is the summary of the new text. If it were not sent along, it would go.
        if "content" in changed and collected["summary"]:
            changed["summary"] = collected["summary"]
        if self.cleaned_data["is_minor"]:
            changed["supersede_reason"] = collected["supersede_reason"] or "minor correction"
        return self._read(MemoryChanges, changed)

    def _collected(self) -> dict[str, Any]:
        """The form's values as `memories.draft` wants them."""
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
        """A date that was just entered counts, also where the choice before it was not touched."""
        if chosen in LIFETIMES:
            return timezone.now() + timedelta(days=int(chosen))
        just_entered = "expires_at" in self.changed_data and "expires_in" not in self.changed_data
        return date if chosen in (ON_DATE, "") or just_entered else None

    def _read(self, model: type[T], values: dict[str, Any]) -> T | None:
        return read_or_say(self, model, values)


def _shown(field: forms.Field, value: Any) -> str:
    if isinstance(field, forms.BooleanField):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return date_format(local_time(value), "j M Y, H:i")
    if isinstance(value, list):
        value = ", ".join(value)
    return str(dict(getattr(field.widget, "choices", [])).get(value, value) or "none")


def read_or_say(form: forms.Form, model: type[T], values: dict[str, Any]) -> T | None:
    """The input as an object, or None with the reasons at the form's fields."""
    try:
        return read(model, values)
    except Invalid as problem:
        add_problem(form, problem)
        return None


class ReviewForm(forms.Form):
    """What is corrected most often before something is approved."""

    content = forms.CharField(required=False, strip=False, widget=forms.Textarea(attrs={"rows": 5}))
    category = forms.ChoiceField(choices=Category.choices)
    importance = forms.ChoiceField(choices=IMPORTANCE, widget=Scale)

    def changes(self) -> MemoryChanges | None:
        if not self.is_valid():
            return None
        changed = {name: self.cleaned_data[name] for name in self.changed_data}
        return read_or_say(self, MemoryChanges, {**changed, "supersede_reason": "corrected in review"})


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
        changes = (
            read_or_say(self, MemoryChanges, {"content": self.cleaned_data["content"]}) if self.is_valid() else None
        )
        return changes.content if changes else None


def _minute(moment: datetime | None) -> datetime | None:
    """What the browser shows and sends back: without seconds, so that it does not count as a change."""
    return moment.replace(second=0, microsecond=0) if moment else None


def values_of(memory: Memory) -> dict[str, Any]:
    """A memory as the form's initial values."""
    values = {name: getattr(memory, name) for name in MemoryForm.base_fields if hasattr(memory, name)}
    return {
        **values,
        "tags": memory.tags,
        "occurred_at": _minute(memory.occurred_at),
        "expires_in": ON_DATE if memory.expires_at else NEVER,
        "expires_at": _minute(memory.expires_at),
        "importance": str(memory.importance),
        "confidence": f"{memory.confidence:g}",
        "source_conversation_id": str(memory.source_conversation_id or ""),
        "supersede_reason": "",
    }


class FilterForm(forms.Form):
    """The filters under their public names, so that a page's URL reads like the API's."""

    role = forms.ChoiceField(choices=ANY + Role.choices, required=False)
    minImportance = forms.ChoiceField(label="Importance from", choices=ANY + IMPORTANCE, required=False)
    tag = forms.CharField(required=False)
    owner = forms.CharField(required=False)
    source = forms.CharField(required=False)
    visibility = forms.ChoiceField(choices=ANY + Visibility.choices, required=False)
    pinned = forms.ChoiceField(choices=[*ANY, ("true", "Pinned"), ("false", "Not pinned")], required=False)
    embedding = forms.ChoiceField(choices=ANY + EmbeddingState.choices, required=False)
    createdAfter = forms.CharField(label="Created from", required=False, widget=LocalMoment)
    createdBefore = forms.CharField(label="Created before", required=False, widget=LocalMoment)
    occurredAfter = forms.CharField(label="Happened from", required=False, widget=LocalMoment)
    occurredBefore = forms.CharField(label="Happened before", required=False, widget=LocalMoment)
    conversationId = forms.CharField(label="Conversation", required=False)
    includeSuperseded = forms.ChoiceField(
        label="Superseded", choices=[("", "Hide"), ("true", "Show too")], required=False
    )


def filter_form(query: QueryDict, filters: Filters) -> FilterForm:
    """What is in force, with an alias shown as the word it stands for."""
    shown = query.copy()
    if filters.role:
        shown["role"] = filters.role
    return FilterForm(shown)


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


MOMENTS = ("createdAfter", "createdBefore", "occurredAfter", "occurredBefore")


def read_filters(values: dict[str, Any]) -> Filters:
    """From a page's query string, where what is empty means any, and a time without a zone is in the reader's."""
    given = {name: value for name, value in values.items() if value not in ("", [])}
    return read(Filters, in_readers_zone(given, MOMENTS))


def in_readers_zone(values: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    found = dict(values)
    for name in names:
        try:
            moment = datetime.fromisoformat(values.get(name, ""))
        except ValueError:
            continue  # left as it is: reading the filters says what is wrong with it
        found[name] = timezone.make_aware(moment) if timezone.is_naive(moment) else moment
    return found
