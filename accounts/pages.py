"""What all views of the console share: the user, the instance, parameters and HTMX fragments."""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.middleware import HtmxDetails

from accounts.access import Actor, Scope, actor_of_user, instances_of, open_instance
from accounts.models import User
from instances.models import Instance
from memoryconsole.connections import dispensable
from memoryconsole.errors import NotAllowed, NotFound
from memoryconsole.ids import parse_id
from memoryconsole.inputs import whole_number

P = ParamSpec("P")
# How many rows a page of a long list may have; the first is the default.
SIZES = (25, 50, 100)


class VisitorRequest(HttpRequest):
    """A request, with or without a signed-in user."""

    htmx: HtmxDetails


class ConsoleRequest(VisitorRequest):
    """A request of a signed-in user."""

    user: User
    scope: Scope


def actor_of(request: ConsoleRequest) -> Actor:
    return actor_of_user(request.user)


def wants_fragment(request: ConsoleRequest) -> bool:
    """Whether HTMX asks for a part of the page. Boosted links and the back button need the whole page."""
    return bool(request.htmx) and not request.htmx.boosted and not request.htmx.history_restore_request


def render_part(request: ConsoleRequest, template: str, part: str, context: dict[str, Any]) -> HttpResponse:
    """The page, or the part of it that HTMX replaces."""
    response = render(request, f"{template}#{part}" if wants_fragment(request) else template, context)
    patch_vary_headers(response, ["HX-Request"])
    return response


def render_question(request: ConsoleRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """A question about a row, shown in a dialog. If its form fails it is shown there again, and the row stays."""
    response = render_part(request, template, "question", context)
    if request.method == "POST":
        response["HX-Retarget"], response["HX-Reswap"] = "#dialog", "innerHTML"
    return response


def decided(request: ConsoleRequest, row: str, template: str, context: dict[str, Any]) -> HttpResponse:
    """HTMX takes the row away; also when it came to ask about one that somebody else has decided about meanwhile."""
    response = render(request, template, context)
    response["HX-Retarget"], response["HX-Reswap"] = f"#{row}", "delete"
    return response


def without(query: QueryDict, *names: str) -> QueryDict:
    """A copy of the query without these parameters."""
    kept = query.copy()
    for name in names:
        kept.pop(name, None)
    return kept


def posted(request: HttpRequest) -> QueryDict | None:
    """The data to bind a form to: what was posted, or None for a form that is only shown."""
    return request.POST if request.method == "POST" else None


def is_path(address: str) -> bool:
    """Whether an address leads to a page of this site.

    Only what is before its query decides that. The query may be longer than Django's 2,048 characters for an address:
    it holds what is searched for, or the message that recall is tried with.
    """
    return url_has_allowed_host_and_scheme(address.partition("?")[0], allowed_hosts=None)


def page_number(request: ConsoleRequest) -> int:
    number = whole_number(request.GET.get("page", ""))
    return 1 if number is None else number


def told_page_number(request: ConsoleRequest) -> int:
    """The page number, with a message to the reader if it is not a number."""
    if whole_number(request.GET.get("page", "1")) is None:
        messages.warning(request, "That is not a page number; this is page 1.")
    return page_number(request)


def told_page_size(request: ConsoleRequest, things: str) -> int:
    """The page size, with a message to the reader if it is not one of `SIZES`."""
    size = request.GET.get("size", str(SIZES[0]))
    if size in map(str, SIZES):
        return int(size)
    messages.warning(request, f"A page has {', '.join(map(str, SIZES[:-1]))} or {SIZES[-1]} {things}.")
    return SIZES[0]


def tell_of_other_page(request: ConsoleRequest, asked: int, shown: int) -> None:
    if asked != shown:
        messages.warning(request, f"There is no page {asked:,}; this is page {shown:,}.")


def seen_in(request: ConsoleRequest) -> datetime | None:
    """When the edited row was last saved, as far as the form's page knew; None if the form does not say."""
    try:
        return datetime.fromisoformat(request.POST.get("seen", ""))
    except ValueError:
        return None


def ticked(request: ConsoleRequest) -> list[UUID]:
    """The ids of the ticked rows. Our checkboxes hold only valid ids, so any other is a 404."""
    ids = [parse_id(raw) for raw in request.POST.getlist("ids")]
    if None in ids:
        raise NotFound
    return [id for id in ids if id is not None]


def about_instance(
    view: Callable[Concatenate[ConsoleRequest, Scope, P], HttpResponseBase],
) -> Callable[Concatenate[ConsoleRequest, P], HttpResponseBase]:
    """Open the instance that the URL names; without a name redirect to the one the reader used last."""

    @wraps(view)
    def with_scope(request: ConsoleRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        slug = request.GET.get("instance", "")
        if not slug:
            return _with_remembered_instance(request)
        request.scope = open_instance(actor_of(request), slug)
        _remember(request.user, request.scope.instance)
        return view(request, request.scope, *args, **kwargs)

    return with_scope


def superadmins_only(
    view: Callable[Concatenate[ConsoleRequest, P], HttpResponse],
) -> Callable[Concatenate[ConsoleRequest, P], HttpResponse]:
    @wraps(view)
    def guarded(request: ConsoleRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not request.user.is_superadmin:
            raise NotAllowed("Only a superadmin may open this page.")
        return view(request, *args, **kwargs)

    return guarded


def _with_remembered_instance(request: ConsoleRequest) -> HttpResponse:
    own = instances_of(actor_of(request))
    last = request.user.last_instance_id
    instance = (own.filter(id=last).first() if last else None) or own.order_by("slug").first()
    if instance is None:
        return render(request, "no_instances.html", {})
    query = request.GET.copy()
    query["instance"] = instance.slug
    return redirect(f"{request.path}?{query.urlencode()}")


def _remember(user: User, instance: Instance) -> None:
    if user.last_instance_id != instance.id:
        with dispensable("The instance somebody opened"):
            User.objects.filter(pk=user.pk).update(last_instance=instance)
