"""/instances: the list of instances, their settings, creating and deleting them."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.html import format_html
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.access import Scope, open_instance, require_superadmin
from accounts.pages import ConsoleRequest, actor_of, posted, render_part, superadmins_only, wants_fragment
from instances.forms import NewInstanceForm, SettingsForm
from instances.listing import contents_of, demo_instances, free_slug, list_instances
from instances.providers import provider_for, why_key_fails
from instances.store import (
    NOT_A_KEY,
    InstanceChanges,
    change_instance,
    create_instance,
    delete_instance,
    looks_like_key,
)
from instances.warnings import warnings_for
from memories.demo import remove_demo
from memoryconsole.connections import release_connection
from memoryconsole.counting import counted
from memoryconsole.errors import Invalid
from memoryconsole.forms import ConfirmForm, add_problem, ask_again


@require_GET
def instance_list(request: ConsoleRequest) -> HttpResponse:
    rows = list_instances(actor_of(request))
    context = {"rows": rows, "has_demo": any(row.instance.is_demo for row in rows)}
    return render(request, "instances/list.html", context)


@require_http_methods(["GET", "POST"])
@superadmins_only
def instance_new(request: ConsoleRequest) -> HttpResponse:
    form = NewInstanceForm(posted(request), initial=request.GET.dict())
    suggestion = free_slug((request.POST or request.GET).get("name", ""))
    form.suggest(suggestion)
    if request.method == "POST" and form.is_valid():
        try:
            instance = create_instance(actor_of(request), form.draft(suggestion))
        except Invalid as problem:
            add_problem(form, problem)
        else:
            said = '{} is ready. Now <a href="/keys/new?instance={}">make an API key</a> for its engine.'
            messages.success(request, format_html(said, instance.name, instance.slug))
            return redirect(f"/instances/{instance.slug}/settings")
    return render_part(request, "instances/new.html", "slug", {"form": form})


@require_GET
def settings_of_picked(request: ConsoleRequest) -> HttpResponse:
    """The target of the instance picker on a settings page: the settings of the picked instance."""
    return redirect(f"/instances/{_open(request, request.GET.get('instance', '')).instance.slug}/settings")


@sensitive_post_parameters("openai_key")
@require_http_methods(["GET", "POST"])
def instance_settings(request: ConsoleRequest, slug: str) -> HttpResponse:
    scope = _open(request, slug)
    form = _settings_form(request, scope)
    if request.method == "POST" and "remove_openai_key" in request.POST:
        return _remove_key(request, scope, form)
    if request.method == "POST" and form.is_valid():
        try:
            change_instance(scope, form.changes())
        except Invalid as problem:
            scope.instance.refresh_from_db()
            add_problem(form, problem)
        else:
            messages.success(request, "The settings are saved.")
            return redirect(f"/instances/{slug}/settings")
    return _settings_page(request, scope, form)


def _remove_key(request: ConsoleRequest, scope: Scope, form: SettingsForm) -> HttpResponse:
    """Remove only the key. What else was typed is not saved, but stays in the form."""
    is_changed = form.has_changed()
    change_instance(scope, InstanceChanges(openai_key=""))
    rest = " What else you have changed on this page is not saved yet." if is_changed else ""
    messages.success(request, f"The key is removed.{rest}")
    if not is_changed:
        return redirect(f"/instances/{scope.instance.slug}/settings")
    typed = SettingsForm(instance=scope.instance, is_superadmin=scope.actor.is_superadmin, typed=form.as_typed())
    return _settings_page(request, scope, typed)


@dataclass(frozen=True, slots=True)
class Tested:
    works: bool
    message: str


@sensitive_post_parameters("openai_key")
@require_POST
def instance_test_key(request: ConsoleRequest, slug: str) -> HttpResponse:
    scope = _open(request, slug)
    tested = _test(request.POST.get("openai_key", "").strip() or scope.instance.openai_key)
    if wants_fragment(request):
        return render(request, "instances/settings.html#tested", {"tested": tested})
    return _settings_page(request, scope, _settings_form(request, scope), tested)


@require_http_methods(["GET", "POST"])
def instance_delete(request: ConsoleRequest, slug: str) -> HttpResponse:
    scope = _open(request, slug)
    require_superadmin(scope.actor)
    form = ConfirmForm(posted(request), name=scope.instance.slug, is_its="slug", otherwise="Nothing was deleted.")
    if request.method == "POST" and form.is_valid():
        counts = delete_instance(scope)
        messages.success(request, f"{scope.instance.name} is deleted, {_with_contents(counts)}. Nothing of it is left.")
        return redirect("/instances")
    return render(request, "instances/delete.html", {"form": form, "contents": contents_of(scope)})


@require_http_methods(["GET", "POST"])
@superadmins_only
def demo_remove(request: ConsoleRequest) -> HttpResponse:
    if request.method == "POST":
        counts = remove_demo(actor_of(request))
        messages.success(request, f"The demo is removed, {_with_contents(counts)}.")
        return redirect("/instances")
    return render_part(request, "instances/remove_demo.html", "question", {"demo": demo_instances()})


def _open(request: ConsoleRequest, slug: str) -> Scope:
    request.scope = open_instance(actor_of(request), slug)
    return request.scope


def _settings_form(request: ConsoleRequest, scope: Scope) -> SettingsForm:
    return SettingsForm(posted(request), instance=scope.instance, is_superadmin=scope.actor.is_superadmin)


def _settings_page(
    request: ConsoleRequest, scope: Scope, form: SettingsForm, tested: Tested | None = None
) -> HttpResponse:
    if tested is None or tested.works:
        ask_again(form, "openai_key")
    context = {
        "form": form,
        "tested": tested,
        "warnings": warnings_for(scope.instance),
        "provider": provider_for(scope.instance),
    }
    return render(request, "instances/settings.html", context)


def _test(key: str) -> Tested:
    if not key:
        return Tested(works=False, message="There is no key to test. Enter one first.")
    if not looks_like_key(key):
        return Tested(works=False, message=NOT_A_KEY)
    release_connection()
    reason = why_key_fails(key)
    return Tested(works=not reason, message=reason or "The key works.")


def _with_contents(counts: dict[str, int]) -> str:
    memories, conversations = counts["memories"], counts["conversations"]
    return f"with {counted(memories, 'memory', 'memories')} and {counted(conversations, 'conversation')}"
