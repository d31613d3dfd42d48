"""What people see when there is no page, or when what they sent cannot be trusted."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from memoryconsole.errors import NotAllowed, NotFound

STALE = (
    "The page you sent this from is out of date: somebody has signed in or out since. Nothing was saved. Go back, then "
    "send it again."
)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "problem.html", {"problem": NotFound()}, status=404)


def not_trusted(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without the token of this session."""
    return render(request, "problem.html", {"problem": NotAllowed(STALE)}, status=403)
