"""Our own middleware."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import django.http.response
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    HttpResponsePermanentRedirect,
    HttpResponseRedirect,
)
from django.middleware.common import CommonMiddleware
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone

from memoryconsole.errors import Problem

SIGNED_OUT = "You were signed out. Sign in to go on where you were."
NOT_SAVED = "You were signed out, so nothing was saved. Sign in, then go back and send it again."
NO_PAGE = "This address is no page: it only takes what is sent from one. Nothing was changed."

PROBES = {"/healthz", "/readyz"}

# Django redirects to no address of more than 16,384 characters, because reading it takes long on Windows. A long search
# in Chinese makes one, and so does the message that recall is tried with, when it is kept for after signing in.
django.http.response.MAX_URL_REDIRECT_LENGTH = 100_000  # type: ignore[attr-defined]

View = Callable[[HttpRequest], HttpResponseBase]


def content_security_policy(get_response: View) -> View:
    policy = "; ".join(f"{name} {' '.join(sources)}" for name, sources in settings.SECURE_CSP.items())

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", policy)
        return response

    return middleware


class known_hosts(CommonMiddleware):
    """Django's check of the Host header against ALLOWED_HOSTS, except for health checks.

    A load balancer asks for those by address, and the answer does not depend on the host.
    """

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        return None if request.path_info in PROBES else super().process_request(request)


def reader_time_zone(get_response: View) -> View:
    """Show times in the reader's zone, which `static/js/console.js` keeps in a cookie."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        try:
            zone = ZoneInfo(request.COOKIES.get("tz", "UTC"))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            zone = ZoneInfo("UTC")
        with timezone.override(zone):
            return get_response(request)

    return middleware


class shortcut_for_programs:
    """Skip everything up to `end_of_shortcut` for API requests with a key: sessions, CSRF tokens, messages.

    Only browsers need those: a request that presents a key is judged by it alone (`accounts.api_authentication`).
    """

    inside: View

    def __init__(self, get_response: View) -> None:
        self.for_people, self.for_programs = get_response, self.inside

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if "HTTP_AUTHORIZATION" not in request.META or not request.path_info.startswith("/api/v1/"):
            return self.for_people(request)
        request.user = AnonymousUser()
        return self.for_programs(request)


def end_of_shortcut(get_response: View) -> View:
    """Where the shortcut leads. Django builds middleware from the inside out, so this is built first."""
    shortcut_for_programs.inside = staticmethod(get_response)
    return get_response


class sign_in_first(LoginRequiredMiddleware):
    """Tell people whose session has ended, and that what they sent was not saved."""

    def handle_no_permission(self, request: HttpRequest, view_func: Callable[..., Any]) -> HttpResponseRedirect:
        is_page_open = request.method == "POST" or "HX-Request" in request.headers
        if is_page_open and "X-Hint" not in request.headers:
            messages.warning(request, NOT_SAVED if request.method == "POST" else SIGNED_OUT)
        return redirect_to_login(_page_to_go_on_with(request))


def _page_to_go_on_with(request: HttpRequest) -> str:
    """The address of the request or, for a form, of the page it was on: the form's target may be no page."""
    page = urlsplit(request.headers.get("Referer", ""))
    is_sent = request.method == "POST" and page.netloc == request.get_host()
    return page._replace(scheme="", netloc="").geturl() if is_sent else request.get_full_path()


class pages_for_errors:
    """Show a `Problem` that a view raises as a page. The API has its own handler."""

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if isinstance(response, HttpResponseNotAllowed):
            response.content = render_to_string("problem.html", {"problem": Problem(NO_PAGE)}, request)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, Problem):
            return None
        return render(request, "problem.html", {"problem": exception}, status=exception.status)
