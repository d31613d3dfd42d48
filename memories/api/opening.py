"""Opening the instance of a request and reading its input.

The instance comes first: somebody who may not open it gets the same 404 whatever else they send.
"""

from typing import Any, TypeVar

from rest_framework.request import Request

from accounts.access import Scope, open_instance
from accounts.api_authentication import actor_of
from memoryconsole.endpoints import body, query, query_or_body
from memoryconsole.errors import Invalid
from memoryconsole.inputs import Input, read

T = TypeVar("T", bound=Input)


def from_query(request: Request, model: type[T], *several: str) -> tuple[Scope, T]:
    """The scope and the input of a request without a body; the names in `several` may be repeated."""
    return _opened(request, query(request, *several), model)


def from_body(request: Request, model: type[T]) -> tuple[Scope, T]:
    if "instanceId" in query(request):
        raise Invalid({"instanceId": ["Send this in the body, not in the query string."]})
    return _opened(request, body(request), model)


def from_query_or_body(request: Request, model: type[T]) -> tuple[Scope, T]:
    return _opened(request, query_or_body(request), model)


def _opened(request: Request, data: dict[str, Any], model: type[T]) -> tuple[Scope, T]:
    slug = data.pop("instanceId", None)
    scope = open_instance(actor_of(request), None if slug is None else str(slug))
    return scope, read(model, data)
