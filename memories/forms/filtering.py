"""The filters of the Memory screen, as its form shows them and its address has them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils import timezone

from memories.filters import Filters
from memories.forms.fields import IMPORTANCE, LocalMoment
from memories.vocabulary import EmbeddingState, Role, Visibility
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


def filter_form(query: QueryDict, filters: Filters) -> FilterForm:
    """What is in force, with an alias shown as the word it stands for."""
    shown = query.copy()
    if filters.role:
        shown["role"] = filters.role
    return FilterForm(shown)


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
