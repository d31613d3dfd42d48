"""/keys: the API keys."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from accounts.access import instances_of
from accounts.forms import KeyForm
from accounts.keys import create_key, find_key, keys_seen_by, revoke_key, state_of
from accounts.pages import ConsoleRequest, actor_of, posted, render_part
from memoryconsole.errors import Conflict, Invalid
from memoryconsole.forms import add_problem
from memoryconsole.ids import parse_id, uuid7


@require_GET
def key_list(request: ConsoleRequest) -> HttpResponse:
    keys = keys_seen_by(actor_of(request))
    return render(request, "accounts/keys.html", {"keys": [(key, state_of(key)) for key in keys]})


@never_cache
@require_http_methods(["GET", "POST"])
def key_new(request: ConsoleRequest) -> HttpResponse:
    actor = actor_of(request)
    instances = list(instances_of(actor).order_by("slug"))
    asked_for = request.GET.getlist("instance") or [each.slug for each in instances if len(instances) == 1]
    form = KeyForm(
        posted(request),
        initial={"instances": asked_for},
        instances=instances,
        is_superadmin=actor.is_superadmin,
    )
    if request.method == "POST" and form.is_valid():
        try:
            key, whole = create_key(
                actor,
                name=form.cleaned_data["name"],
                instances=form.chosen(),
                grants=form.grants(),
                expires_at=form.expires_at(),
                id=parse_id(request.POST.get("id")),
            )
        except Invalid as problem:
            add_problem(form, problem)
        except Conflict as problem:
            messages.warning(request, f"{problem.detail} If you have not copied it, revoke it and make another one.")
            return redirect("/keys")
        else:
            # The key is in this response and nowhere else: not in a URL, a message or the session.
            return render(request, "accounts/key_shown.html", {"key": key, "whole": whole})
    # The form has the id of the new key, so that sending it twice does not make two keys.
    return render(request, "accounts/key_new.html", {"form": form, "id": uuid7()})


@require_http_methods(["GET", "POST"])
def key_revoke(request: ConsoleRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    key = find_key(actor, id)
    if request.method == "POST":
        revoke_key(actor, id)
        messages.success(request, f"“{key.name}” is revoked. Programs that use it get 401 from now on.")
        return redirect("/keys")
    return render_part(request, "accounts/key_revoke.html", "question", {"key": key})
