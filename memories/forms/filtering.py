"""The filters of the Memory screen, as its form shows them and its URL has them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils import timezone

from memories.filters import Filters
from memories.forms.fields import IMPORTANCE, LocalMoment
from memories.vocabulary import EmbeddingState, Role, Visibility
from memoryconsole.errors import Invalid
from memoryconsole.inputs import read

ANY = [("", "Any")]
MOMENTS = ("createdAfter", "createdBefore", "occurredAfter", "occurredBefore")


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


def filter_form(query: QueryDict, filters: Filters, invalid: Invalid | None) -> FilterForm:
    """The form for the filters in force, with their own errors; an alias of a role is shown as the role."""
    shown = query.copy()
    if filters.role:
        shown["role"] = filters.role
    form = FilterForm(shown)
    form.errors.clear()
    for name, reasons in invalid.errors.items() if invalid else ():
        form.add_error(name if name in form.fields else None, reasons)
    return form


def read_filters(values: dict[str, Any]) -> Filters:
    """Filters from a page's query string. Empty values mean any, and times without a zone are in the reader's."""
    not_empty = {name: value for name, value in values.items() if value not in ("", [])}
    return read(Filters, in_readers_zone(not_empty, MOMENTS))


def in_readers_zone(values: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    found = dict(values)
    for name in names:
        try:
            moment = datetime.fromisoformat(values.get(name, ""))
        except ValueError:
            continue  # left as it is: validation reports it
        found[name] = timezone.make_aware(moment) if timezone.is_naive(moment) else moment
    return found
