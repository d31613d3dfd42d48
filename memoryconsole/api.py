"""What all endpoints share: strict JSON in, one error shape out, never a stack trace and never HTML.

REST framework imports this module while it loads its views, so it must not import them; `endpoints` may.
"""

import errno
import logging
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.management.base import CommandError
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from django.http.request import UnreadablePostError
from django.views.decorators.csrf import csrf_exempt
from pydantic_core import to_json
from rest_framework import exceptions
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from memoryconsole.errors import Invalid, NotFound, Problem, TooLarge, Unreadable
from memoryconsole.parsing import NotJson, parse_json

logger = logging.getLogger(__name__)

# SQLSTATE codes of PostgreSQL.
DEADLOCK = "40P01"
DISK_FULL = "53100"
READ_ONLY = "25006"
FOREIGN_KEY_VIOLATION = "23503"

SEND_KEY = "Send an API key, as: Authorization: Bearer mc_…"
# Instead of what REST framework says, which names what was wrong and not what to do.
WHAT_TO_SEND: dict[type[exceptions.APIException], str] = {
    exceptions.NotAuthenticated: SEND_KEY,
    exceptions.UnsupportedMediaType: "Send the body as JSON, with Content-Type: application/json.",
}
STANDBY = "The database takes no changes just now. Try again in a moment."
NO_ROOM = "The disk of the database is full: nothing can be saved until somebody makes room."
FILES_FULL = "The disk for files is full: none can be kept until somebody makes room."
FILES_CLOSED = "Files cannot be kept: somebody has to make the data directory writable for the server."
NO_FILES = {
    errno.ENOSPC: FILES_FULL,
    errno.EDQUOT: FILES_FULL,
    errno.EROFS: FILES_CLOSED,
    errno.EACCES: FILES_CLOSED,
    errno.EPERM: FILES_CLOSED,
}


class Unavailable(Problem):
    status = 503
    code = "unavailable"
    detail = "The database cannot be reached. Try again in a moment."


class Unexpected(Problem):
    status = 500
    code = "server_error"
    detail = "Something went wrong on the server. It has been logged."


class StrictJSONParser(JSONParser):
    """UTF-8 JSON of at most the allowed size."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        raw = stream.read(settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)
        if len(raw) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise _body_too_large()
        try:
            return parse_json(raw.decode("utf-8"))
        except UnicodeError:
            raise exceptions.ParseError("The body is not valid UTF-8.", code="invalid_json") from None
        except NotJson as error:
            raise exceptions.ParseError(f"The body is not valid JSON: {error}", code="invalid_json") from None


class QuickJSONRenderer(JSONRenderer):
    """Django REST framework's JSON, several times as fast."""

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return b"" if data is None else to_json(data, inf_nan_mode="null")


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response:
    problem = as_problem(error)
    if problem is not None:
        headers = {"Retry-After": "1"} if problem.status == 503 else {}
        return Response(problem_json(problem), status=problem.status, headers=headers)
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    if isinstance(error, exceptions.APIException):
        return _answer(error)
    request: Request = context["request"]
    log_unexpected(error, f"{request.method} {request.path}")
    return Response(problem_json(Unexpected()), status=500)


def as_problem(error: Exception) -> Problem | None:
    """What to tell the caller about an error that can happen in operation; None for a bug."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, RequestDataTooBig):
        # Of a file, `upload_limit` says what is too large; of other fields Django, in words about its settings.
        return error.__cause__ if isinstance(error.__cause__, Problem) else _body_too_large()
    if isinstance(error, SuspiciousOperation | UnreadablePostError):
        return Unreadable()
    if isinstance(error, OSError) and error.errno in NO_FILES:
        logger.error("files cannot be kept: %s", error.strerror)
        return Unavailable(NO_FILES[error.errno])
    state = getattr(error.__cause__, "sqlstate", None)
    if state == DEADLOCK:
        return Unavailable("Somebody else is changing the same. Try again.", code="try_again")
    if state == FOREIGN_KEY_VIOLATION:
        return NotFound("What this belongs to has been deleted in the meantime.")
    if state == READ_ONLY or isinstance(error, OperationalError | InterfaceError | CommandError):
        logger.error("database unavailable: %s", type(error.__cause__ or error).__name__)
        return Unavailable({DISK_FULL: NO_ROOM, READ_ONLY: STANDBY}.get(str(state), ""))
    return None


def _body_too_large() -> TooLarge:
    return TooLarge("The body", settings.DATA_UPLOAD_MAX_MEMORY_SIZE)


def _answer(error: exceptions.APIException) -> Response:
    headers: dict[str, str] = {}
    # REST framework asks `accounts.api_authentication` for it.
    if auth_header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = auth_header
    if isinstance(error, exceptions.Throttled):
        headers["Retry-After"] = str(int(getattr(error, "wait", None) or 0) + 1)
    code = error.get_codes() if isinstance(error.get_codes(), str) else error.default_code
    detail = WHAT_TO_SEND.get(type(error), str(error.detail))
    return Response({"detail": detail, "code": code}, status=error.status_code, headers=headers)


def log_unexpected(error: Exception, where: str) -> None:
    """`memoryconsole.logs` leaves out the message, which may quote a memory."""
    logger.error("Unexpected error in %s", where, exc_info=error)


def problem_json(problem: Problem) -> dict[str, Any]:
    answer: dict[str, Any] = {"detail": problem.detail, "code": problem.code, **problem.extra}
    if isinstance(problem, Invalid):
        answer["errors"] = problem.errors
    return answer


@csrf_exempt
@login_not_required
def not_found(request: HttpRequest, **kwargs: object) -> JsonResponse:
    return JsonResponse({"detail": "There is no such endpoint.", "code": "not_found"}, status=404)
