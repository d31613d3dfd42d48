"""What every page of the console shares: who is signed in, and which instance the page is about."""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django_htmx.middleware import HtmxDetails

from accounts.access import Actor, Scope, actor_of_user, instances_of, open_instance
from accounts.models import User
from instances.models import Instance
from memoryconsole.connections import dispensable
from memoryconsole.errors import NotAllowed, NotFound
from memoryconsole.ids import parse_id
from memoryconsole.inputs import whole_number

P = ParamSpec("P")
# How many rows a long list has on a page; the first unless something else is chosen.
SIZES = (25, 50, 100)


class VisitorRequest(HttpRequest):
    """A request of anybody."""

    htmx: HtmxDetails


class ConsoleRequest(VisitorRequest):
    """A request of somebody who is signed in."""

    user: User
    scope: Scope


def actor_of(request: ConsoleRequest) -> Actor:
    return actor_of_user(request.user)


def wants_fragment(request: ConsoleRequest) -> bool:
    """HTMX asks for the part it replaces; going back and boosted links need the whole page."""
    return bool(request.htmx) and not request.htmx.boosted and not request.htmx.history_restore_request


def render_part(request: ConsoleRequest, template: str, part: str, context: dict[str, Any]) -> HttpResponse:
    """The page, or the part of it that HTMX replaces."""
    response = render(request, f"{template}#{part}" if wants_fragment(request) else template, context)
    patch_vary_headers(response, ["HX-Request"])
    return response


def render_question(request: ConsoleRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """What is asked about a row before it is decided, in the dialog; if that fails the row stays, to be asked again."""
    response = render_part(request, template, "question", context)
    if request.method == "POST":
        response["HX-Retarget"], response["HX-Reswap"] = "#dialog", "innerHTML"
    return response


def without(query: QueryDict, *names: str) -> QueryDict:
    """What an address asks for, but for these."""
    kept = query.copy()
    for name in names:
        kept.pop(name, None)
    return kept


def posted(request: HttpRequest) -> QueryDict | None:
    """What a form is filled with: what was sent, or nothing where the page only shows it."""
    return request.POST if request.method == "POST" else None


def page_number(request: ConsoleRequest) -> int:
    number = whole_number(request.GET.get("page", ""))
    return 1 if number is None else number


def told_page_number(request: ConsoleRequest) -> int:
    """The same, and the reader is told when it is none."""
    number = whole_number(request.GET.get("page", "1"))
    if number is None:
        messages.warning(request, "That is not a page number; this is page 1.")
    return 1 if number is None else number


def told_page_size(request: ConsoleRequest, things: str) -> int:
    """How many of these things a page is to have; the reader is told when it cannot have so many."""
    size = request.GET.get("size", str(SIZES[0]))
    if size in map(str, SIZES):
        return int(size)
    messages.warning(request, f"A page has {', '.join(map(str, SIZES[:-1]))} or {SIZES[-1]} {things}.")
    return SIZES[0]


def tell_of_other_page(request: ConsoleRequest, asked: int, shown: int) -> None:
    if asked != shown:
        messages.warning(request, f"There is no page {asked:,}; this is page {shown:,}.")


def seen_in(request: ConsoleRequest) -> datetime | None:
    """When what a form changes was last written, as its page showed it; None when the form does not say."""
    try:
        return datetime.fromisoformat(request.POST.get("seen", ""))
    except ValueError:
        return None


def ticked(request: ConsoleRequest) -> list[UUID]:
    """The ids of the rows that were ticked; the boxes have no others, so one that is none comes from nowhere."""
    ids = [parse_id(raw) for raw in request.POST.getlist("ids")]
    if None in ids:
        raise NotFound
    return [id for id in ids if id is not None]


def about_instance(
    view: Callable[Concatenate[ConsoleRequest, Scope, P], HttpResponseBase],
) -> Callable[Concatenate[ConsoleRequest, P], HttpResponseBase]:
    """The page is about the instance in its URL; a page opened without one goes to the last one the reader used."""

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
