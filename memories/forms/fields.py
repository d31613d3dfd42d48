"""What the forms of the Memory screen are made from."""

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


def typed_tags(typed: str) -> list[str]:
    """Several at once are separated by commas, wherever tags are typed."""
    return [tag.strip() for tag in typed.split(",")]


class TagEditor(forms.Widget):
    """Each tag is a box that can be unticked, and beside them is room for more. Works without scripts."""

    template_name = "memories/_tags.html"
    suggestions: Sequence[KnownTag] = ()

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        return {**super().get_context(name, None, attrs), "tags": value or [], "suggestions": self.suggestions}

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        """The boxes that are ticked and what was typed, at commas."""
        typed = typed_tags(data.get(name, ""))
        return list(dict.fromkeys(tag for tag in [*data.getlist(f"kept_{name}"), *typed] if tag))


class TagsField(forms.Field):
    widget = TagEditor

    def has_changed(self, initial: Any, data: Any) -> bool:
        return list(initial or []) != list(data or [])


def read_or_say(form: forms.Form, model: type[T], values: dict[str, Any]) -> T | None:
    """The input as an object, or None with the reasons at the form's fields."""
    try:
        return read(model, values)
    except Invalid as problem:
        add_problem(form, problem)
        return None
