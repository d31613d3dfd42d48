"""/login, /logout and /password."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from accounts.forms import OwnPasswordForm, SignInForm
from accounts.pages import ConsoleRequest, VisitorRequest, is_path, posted
from accounts.people import change_own_password
from memoryconsole.errors import Invalid
from memoryconsole.forms import add_problem


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def sign_in(request: VisitorRequest) -> HttpResponse:
    next_url = _next_url(request)
    if request.user.is_authenticated:
        return redirect(next_url)
    if request.htmx:
        # The page asks for hints by itself; they must not take the reader away from it.
        return HttpResponse(status=204) if "X-Hint" in request.headers else _whole_page(request.htmx, next_url)
    form = SignInForm(request, posted(request))
    if request.method == "POST" and form.is_valid():
        login(request, form.get_user())
        return redirect(next_url)
    return render(request, "accounts/login.html", {"form": form, "next": _wanted(request)})


@require_POST
def sign_out(request: ConsoleRequest) -> HttpResponse:
    logout(request)
    return redirect("/login")


def locked_out(request: HttpRequest, _response: HttpResponse, _credentials: dict[str, Any]) -> HttpResponse:
    """The response of django-axes after too many failures. Every further attempt starts the wait again."""
    wait = timedelta(hours=settings.AXES_COOLOFF_TIME)
    context = {"again_at": timezone.now() + wait, "minutes": round(wait.total_seconds() / 60)}
    response = render(request, "accounts/locked_out.html", context, status=429)
    response.headers["Retry-After"] = str(round(wait.total_seconds()))
    return response


@sensitive_post_parameters("current", "password", "again")
@require_http_methods(["GET", "POST"])
def password(request: ConsoleRequest) -> HttpResponse:
    form = OwnPasswordForm(posted(request), user=request.user)
    if request.method == "POST" and form.is_valid():
        try:
            change_own_password(request.user, password=form.cleaned_data["password"])
        except Invalid as problem:
            add_problem(form, problem)
        else:
            update_session_auth_hash(request, request.user)
            messages.success(request, "Your password is changed. Other devices are signed out.")
            return redirect("/password")
    return render(request, "accounts/password.html", {"form": form})


def _wanted(request: HttpRequest) -> str:
    return request.POST.get("next") or request.GET.get("next", "")


def _next_url(request: HttpRequest) -> str:
    wanted = _wanted(request)
    return wanted if is_path(wanted) else resolve_url(settings.LOGIN_REDIRECT_URL)


def _whole_page(htmx: HtmxDetails, asked: str) -> HttpResponse:
    """Show the form in the whole window, not in the fragment that HTMX asked for: the session ended in an open page.

    After signing in the reader is back on that page. If the fragment was the page's own, such as the search being
    typed, its query is kept.
    """
    page = htmx.current_url_abs_path or "/memory"
    next_url = asked if asked.partition("?")[0] == page.partition("?")[0] else page
    return HttpResponseClientRedirect(f"/login?{urlencode({'next': next_url})}")
