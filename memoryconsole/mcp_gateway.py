"""`/mcp`: checks the key and the rate limit, then passes the request to the MCP server, which is a process of its own.

That never answers with a stream, so a request holds its thread no longer than any other.
"""

import http.client
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from rest_framework.exceptions import NotAuthenticated
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.access import Actor
from memoryconsole.connections import release_connection
from memoryconsole.endpoints import Endpoint, check_body
from memoryconsole.errors import Problem

# The first request starts the server, which takes seconds on a small machine; a tool may wait for an embeddings API.
PATIENCE_SECONDS = 60


class Absent(Problem):
    status = 503
    code = "unavailable"
    detail = "The MCP server does not answer. Try again in a moment."


class WithKey(BasePermission):
    """Only an API key, not a session: the instance comes from the key."""

    def has_permission(self, request: Request, view: object) -> bool:
        if not isinstance(request.user, Actor) or request.user.kind != "key":
            raise NotAuthenticated
        return True


class Gateway(Endpoint):
    http_method_names = ["post"]
    permission_classes = (WithKey,)
    schema = None

    def post(self, request: Request) -> HttpResponse:
        check_body(request)
        if not settings.MCP_PORT:
            raise Absent("No MCP server belongs to this web server; `manage.py up` starts one.")
        body = request.body
        release_connection()
        return _passed_on(body, _headers(request.META))


def _headers(meta: dict[str, Any]) -> dict[str, str]:
    """Only what the protocol needs. The Host becomes 127.0.0.1, the only one that the MCP server accepts."""
    passed = {"Accept": meta.get("HTTP_ACCEPT", "*/*"), "Content-Type": meta.get("CONTENT_TYPE", "")}
    passed["Authorization"] = meta.get("HTTP_AUTHORIZATION", "")
    return passed | {
        name.removeprefix("HTTP_").replace("_", "-"): value
        for name, value in meta.items()
        if name.startswith("HTTP_MCP_")
    }


def _passed_on(body: bytes, headers: dict[str, str]) -> HttpResponse:
    server = http.client.HTTPConnection("127.0.0.1", settings.MCP_PORT, timeout=PATIENCE_SECONDS)
    try:
        server.request("POST", "/mcp", body, headers)
        answer = server.getresponse()
        content = answer.read()
    except (OSError, http.client.HTTPException):
        raise Absent from None
    finally:
        server.close()
    # Django would send text/html for a response without a type.
    return HttpResponse(content, status=answer.status, content_type=answer.getheader("Content-Type") or "text/plain")
