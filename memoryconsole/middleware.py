"""Small things every request passes through."""

from collections.abc import Callable
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from memoryconsole.errors import Problem

type_of_view = Callable[[HttpRequest], HttpResponseBase]


def content_security_policy(get_response: type_of_view) -> type_of_view:
    policy = "; ".join(f"{name} {' '.join(sources)}" for name, sources in settings.SECURE_CSP.items())

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", policy)
        return response

    return middleware


def reader_time_zone(get_response: type_of_view) -> type_of_view:
    """Show times in the reader's zone, which `static/js/console.js` keeps in a cookie."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        try:
            zone = ZoneInfo(request.COOKIES.get("tz", "UTC"))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            zone = ZoneInfo("UTC")
        with timezone.override(zone):
            return get_response(request)

    return middleware


class pages_for_errors:
    """Answer a `Problem` raised by a page with a page; the API has its own handler."""

    def __init__(self, get_response: type_of_view) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, Problem):
            return None
        return render(request, "problem.html", {"problem": exception}, status=exception.status)
