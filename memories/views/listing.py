"""/memory: browse, search, filter, select."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.formats import date_format
from django.views.decorators.http import require_GET

from accounts.access import Scope
from accounts.pages import (
    SIZES,
    ConsoleRequest,
    about_instance,
    tell_of_other_page,
    told_page_number,
    told_page_size,
    wants_fragment,
    without,
)
from conversations.store import conversations_by_id
from instances.warnings import warnings_for
from memories.filters import Filters
from memories.forms.filtering import MOMENTS, FilterForm, filter_form, read_filters
from memories.listing import ORDERS, Totals, count, list_page, pinned_on_top
from memories.models import Memory
from memories.paging import Page
from memories.review.inbox import count_waiting
from memories.views.jobs import embedding_of
from memories.views.searching import keep_history_short, search_page, text_in
from memories.vocabulary import Category, Role
from memoryconsole.errors import Invalid
from memoryconsole.local_time import local_time

ORDER_TITLES = [("newest", "Newest first"), ("oldest", "Oldest first"), ("importance", "Most important first")]
NOT_FILTERS = {"instance", "search", "page", "size", "sort", "anchor", "select", "back", "csrfmiddlewaretoken"}


@require_GET
@about_instance
def memory_list(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    try:
        filters, invalid = filters_in(request.GET), None
    except Invalid as problem:
        filters, invalid = Filters(), problem
    view = _read_view(request)
    text = text_in(request.GET)
    searched = search_page(scope, text, filters, number=view.number, size=view.size) if text and not invalid else None
    totals = count(scope, filters) if not invalid and not searched else Totals({})
    if invalid:
        page: Page[Memory] = Page([], 1, view.size, 0, ORDERS[view.order])
    else:
        page = searched.page if searched else _page(scope, filters, view, totals)
        tell_of_other_page(request, view.number, page.number)
    on_top = [] if searched or invalid else _on_top(scope, filters, view, page)
    others = [memory for memory in page.rows if memory not in on_top]
    rows = on_top + others
    warnings = warnings_for(scope.instance)
    context = {
        "page": page,
        "rows": rows,
        "groups": [("Pinned", on_top), ("Newest first", others)] if on_top else [("", others)],
        "search": searched,
        "text": text,
        "hits": searched.hits if searched else {},
        "chips": chips(request.GET, filters, totals),
        "tokens": tokens(request.GET, filters),
        "filters": filters,
        "filter_form": filter_form(request.GET, filters, invalid),
        "invalid": invalid,
        "is_filtered": bool(filters.narrowing()) or invalid is not None,
        "order": view.order,
        "orders": ORDER_TITLES,
        "sizes": SIZES,
        "selected": _selection(request, page, may_be_all=not searched),
        "categories": Category.choices,
        "roles": Role.choices,
        "conversations": conversations_by_id(scope, [memory.source_conversation_id for memory in rows]),
        "warnings": warnings,
        "is_key_missing_said": any(warning.code == "no_openai_key" for warning in warnings),
        "back": back_to(request.GET),
        "without_search": list_url(request.GET, search=None),
        "with_suggested": list_url(request.GET, search=searched.suggested) if searched and searched.suggested else "",
        "export_query": export_query(request.GET),
    }
    if wants_fragment(request):
        response = keep_history_short(request, render(request, "memories/list.html#memories", context))
    else:
        response = render(request, "memories/list.html", {**context, **_page_context(scope)})
    patch_vary_headers(response, ["HX-Request"])
    return response


def _page_context(scope: Scope) -> dict[str, Any]:
    """Context for what is outside of the list fragment."""
    return {"embedding": embedding_of(scope), "n_waiting": count_waiting(scope)}


def filters_in(query: QueryDict) -> Filters:
    values: dict[str, Any] = {name: query[name] for name in query if name not in NOT_FILTERS}
    if "tag" in values:
        values["tag"] = [tag for tag in query.getlist("tag") if tag.strip()]
    return read_filters(values)


@dataclass(frozen=True, slots=True)
class View:
    number: int
    size: int
    order: str
    anchor: str


def _read_view(request: ConsoleRequest) -> View:
    """The part of the list to show, and its order. Invalid values are replaced by defaults, with a message."""
    number, size = told_page_number(request), told_page_size(request, "memories")
    order = request.GET.get("sort", "") or "newest"
    if order not in ORDERS:
        messages.warning(request, f"The list can be sorted by {', '.join(ORDERS)}.")
        order = "newest"
    return View(number, size, order, request.GET.get("anchor", ""))


def _page(scope: Scope, filters: Filters, view: View, totals: Totals) -> Page[Memory]:
    return list_page(
        scope,
        filters,
        number=view.number,
        size=view.size,
        total=totals.under(filters),
        order=view.order,
        anchor=view.anchor,
    )


def _on_top(scope: Scope, filters: Filters, view: View, page: Page[Memory]) -> list[Memory]:
    """The pinned memories on top of the first page. They also keep their places in the list, for the paging."""
    if view.order != "newest" or page.number > 1 or filters.pinned is not None:
        return []
    return pinned_on_top(scope, filters)


@dataclass(frozen=True, slots=True)
class Chip:
    title: str
    href: str
    n: int = 0
    is_current: bool = False


def chips(query: QueryDict, filters: Filters, totals: Totals) -> list[Chip]:
    """A chip for all and one per category, each with the number of memories that match the other filters."""
    found = [Chip("All", list_url(query, category=None), totals.all, filters.category is None)]
    for category in Category:
        n = totals.by_category.get(category, 0)
        href = list_url(query, category=category.value)
        found.append(Chip(str(category.label), href, n, filters.category == category))
    return found


def tokens(query: QueryDict, filters: Filters) -> list[Chip]:
    """The filters in force except the category, each with a link that removes it."""
    found = []
    for name, value in filters.narrowing().items():
        if name == "category":
            continue
        label = FilterForm.base_fields[name].label or name.capitalize()
        found.append(Chip(f"{label}: {_in_words(name, value)}", list_url(query, **{name: None})))
    return found


def _in_words(name: str, value: Any) -> str:
    """A filter's value as the form shows it: a time in the reader's zone."""
    if name in MOMENTS:
        return date_format(local_time(datetime.fromisoformat(value)), "j M Y, H:i")
    if isinstance(value, list):
        return ", ".join(value)
    # With `is`, because the importance 1 equals True.
    return "yes" if value is True else "no" if value is False else str(value)


def list_url(query: QueryDict, **changes: str | None) -> str:
    """The list's URL with some parameters changed, at its first page."""
    kept = without(query, "page", "anchor", "select", *changes)
    for name, value in changes.items():
        if value is not None:
            kept[name] = value
    return f"/memory?{kept.urlencode()}"


def same_url(query: QueryDict) -> str:
    """The URL of the same page, with nothing selected, and without the anchor because its row may be gone."""
    return f"/memory?{without(query, 'anchor', 'select').urlencode()}"


def export_query(query: QueryDict) -> str:
    """The filters in force as a query string, without paging and the like."""
    return without(query, *NOT_FILTERS - {"instance"}).urlencode()


def back_to(query: QueryDict) -> str:
    """The current list as one parameter, which links to other pages carry along."""
    pairs = [(name, value) for name, values in query.lists() for value in values if value and name != "select"]
    return urlencode({"back": urlencode(pairs)})


def _selection(request: ConsoleRequest, page: Page[Memory], *, may_be_all: bool) -> str:
    """`page` or `all` if the reader has asked for it. With scripts, the boxes do it without a request.

    A search has no `all`: its ranking is no fixed set that could be counted again before it is changed.
    """
    wanted = request.GET.get("select", "")
    if wanted == "all" and may_be_all and page.total > len(page.rows):
        return "all"
    return "page" if wanted in {"page", "all"} else ""
