"""The views that Django calls for errors. Below /api and /mcp some are also called, and answer JSON there."""

import sys

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from memoryconsole.api import Unexpected, as_problem, problem_json
from memoryconsole.errors import NotAllowed, NotFound, Problem, Unreadable

STALE = (
    "The page you sent this from is out of date: somebody has signed in or out since. Nothing was saved. Go back, then "
    "send it again."
)
UNKNOWN_HOST = (
    "This server is not to be reached by this name or address. Whoever runs it can add the name to ALLOWED_HOSTS."
)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """For a request that Django refuses before any view, for example with an unknown Host or too large a file."""
    if isinstance(exception, DisallowedHost):
        return _answer(request, Problem(UNKNOWN_HOST, code="unknown_host"))
    return _answer(request, as_problem(exception) or Unreadable())


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "problem.html", {"problem": NotFound()}, status=404)


def not_trusted(request: HttpRequest, reason: str = "") -> HttpResponse:
    """For a form without the CSRF token of this session."""
    return render(request, "problem.html", {"problem": NotAllowed(STALE)}, status=403)


def server_error(request: HttpRequest) -> HttpResponse:
    """For an error in a page or outside of views."""
    error = sys.exc_info()[1]
    problem = as_problem(error) if isinstance(error, Exception) else None
    if problem is None or problem.status not in (404, 503):
        problem = Unexpected()
    return _answer(request, problem)


def _answer(request: HttpRequest, problem: Problem) -> HttpResponse:
    """Without context processors, because those query the database and ask for the host."""
    if _is_api(request):
        return JsonResponse(problem_json(problem), status=problem.status)
    return HttpResponse(render_to_string("problem.html", {"problem": problem}), status=problem.status)


def _is_api(request: HttpRequest) -> bool:
    return f"{request.path_info}/".startswith(("/api/", "/mcp/"))
