"""Fields and widgets of the forms about memories."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from django import forms
from django.utils import timezone

from memories.tags import KnownTag
from memoryconsole.errors import Invalid
from memoryconsole.forms import add_problem
from memoryconsole.inputs import Input, read
from memoryconsole.local_time import local_time

IMPORTANCE = [(str(n), str(n)) for n in range(1, 11)]
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
    """A local time of the reader. If the clock shows it twice, when summer time ends, it means the first one."""

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
        """Compares local times, because the form does not show which of two equal ones it is."""
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


def typed_tags(typed: str) -> list[str]:
    """Split typed text into tags, at commas."""
    return [tag.strip() for tag in typed.split(",")]


class TagEditor(forms.Widget):
    """A checkbox for each tag, and a text input for more. Works without scripts."""

    template_name = "memories/_tags.html"
    suggestions: Sequence[KnownTag] = ()

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        return {**super().get_context(name, None, attrs), "tags": value or [], "suggestions": self.suggestions}

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        """The ticked tags and the typed ones."""
        typed = typed_tags(data.get(name, ""))
        return list(dict.fromkeys(tag for tag in [*data.getlist(f"kept_{name}"), *typed] if tag))


class TagsField(forms.Field):
    widget = TagEditor

    def has_changed(self, initial: Any, data: Any) -> bool:
        return list(initial or []) != list(data or [])


def read_or_add_errors(form: forms.Form, model: type[T], values: dict[str, Any]) -> T | None:
    """Validate the values; on failure add the errors to the form's fields and return None."""
    try:
        return read(model, values)
    except Invalid as problem:
        add_problem(form, problem)
        return None
