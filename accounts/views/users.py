"""/users: users and their memberships, for superadmins."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.access import Actor, instances_of
from accounts.forms import NewPasswordForm, NewUserForm, UserForm
from accounts.models import User
from accounts.pages import ConsoleRequest, actor_of, posted, superadmins_only
from accounts.people import change_person, create_person, find_person, grants_of, people, reset_password
from memoryconsole.errors import Invalid
from memoryconsole.forms import add_problem, ask_again


@require_GET
@superadmins_only
def user_list(request: ConsoleRequest) -> HttpResponse:
    return render(request, "accounts/users.html", {"people": people(actor_of(request))})


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
@superadmins_only
def user_new(request: ConsoleRequest) -> HttpResponse:
    actor = actor_of(request)
    instances = list(instances_of(actor).order_by("slug"))
    form = NewUserForm(posted(request), instances=instances)
    if request.method == "POST" and form.is_valid():
        try:
            made = create_person(
                actor,
                username=form.cleaned_data["username"],
                password=form.cleaned_data["password"],
                is_superadmin=form.cleaned_data["is_superadmin"],
                grants=form.grants(),
            )
        except Invalid as problem:
            add_problem(form, problem)
        else:
            if made.generated:
                context = {"person": made.user, "password": made.generated, "is_new": True}
                return render(request, "accounts/password_shown.html", context)
            messages.success(request, f"{made.user.username} can sign in now.")
            return redirect("/users")
    ask_again(form, "password")
    return render(request, "accounts/user_new.html", {"form": form})


@require_http_methods(["GET", "POST"])
@superadmins_only
def user_edit(request: ConsoleRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    person = find_person(actor, id)
    form = _user_form(actor, person, posted(request))
    if request.method == "POST" and form.is_valid():
        try:
            change_person(
                actor,
                id,
                is_superadmin=form.cleaned_data["is_superadmin"],
                is_active=form.cleaned_data["is_active"],
                grants=form.grants(),
            )
        except Invalid as problem:
            add_problem(form, problem)
        else:
            messages.success(request, f"{person.username} is changed.")
            return redirect("/users")
    context = {"form": form, "person": person, "password_form": NewPasswordForm()}
    return render(request, "accounts/user_edit.html", context)


@never_cache
@sensitive_post_parameters("password")
@require_POST
@superadmins_only
def user_password(request: ConsoleRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    person = find_person(actor, id)
    if person == request.user:
        return redirect("/password")
    form = NewPasswordForm(request.POST)
    if form.is_valid():
        try:
            reset = reset_password(actor, id, password=form.cleaned_data["password"])
        except Invalid as problem:
            add_problem(form, problem)
        else:
            if reset.generated:
                context = {"person": person, "password": reset.generated, "is_new": False}
                return render(request, "accounts/password_shown.html", context)
            messages.success(request, f"{person.username} has a new password and is signed out everywhere.")
            return redirect("/users")
    context = {"form": _user_form(actor, person), "person": person, "password_form": form}
    return render(request, "accounts/user_edit.html", context)


def _user_form(actor: Actor, person: User, data: QueryDict | None = None) -> UserForm:
    return UserForm(
        data,
        instances=list(instances_of(actor).order_by("slug")),
        grants=grants_of(person),
        initial={"is_superadmin": person.is_superadmin, "is_active": person.is_active},
    )
