"""The base class of API views, and the functions that take the input from a request."""

from collections.abc import Iterable
from typing import Any, TypedDict
from urllib.parse import parse_qsl

from django.conf import settings
from pydantic import ValidationInfo, field_validator
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from memoryconsole.errors import Invalid, Problem
from memoryconsole.inputs import Cursor, Input, Limit, Offset, read
from memoryconsole.presenting import PageJson, SliceJson


class JSONOnly(DefaultContentNegotiation):
    """Answer JSON whatever the Accept header says: an error in a surprising format helps nobody."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        first = next(iter(renderers))
        return first, str(first.media_type)


class Endpoint(APIView):
    # No docstring: it would be shown as the description of every endpoint.
    http_method_names = ["get", "head", "post", "patch", "delete"]
    content_negotiation_class = JSONOnly

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {**super().default_response_headers, "Cache-Control": "no-store"}


class Nothing(Input):
    """Input that should be empty."""


class Slice(Input):
    """A part of a short list."""

    limit: Limit = 20
    offset: Offset = 0

    @property
    def places(self) -> slice:
        return slice(self.offset, self.offset + self.limit)

    def slice_json(self, total: int) -> SliceJson:
        return {"total": total, "limit": self.limit, "offset": self.offset}


class Place(TypedDict):
    limit: int
    offset: int
    cursor: str


class Paging(Slice):
    """A part of a long list: `offset` near its beginning, or the `nextCursor` of the answer before at any depth."""

    cursor: Cursor = ""

    @field_validator("cursor")
    @classmethod
    def _one_of_them(cls, cursor: str, info: ValidationInfo) -> str:
        if cursor and info.data.get("offset"):
            raise ValueError("Send offset or cursor, not both.")
        return cursor

    @property
    def place(self) -> Place:
        """The arguments for the function that makes the list."""
        return {"limit": self.limit, "offset": self.offset, "cursor": self.cursor}

    def page_json(self, total: int, next_cursor: str | None) -> PageJson:
        return {**self.slice_json(total), "nextCursor": next_cursor}


def body(request: Request) -> dict[str, Any]:
    """The JSON object that was sent; its endpoint takes nothing from the query string."""
    read(Nothing, query(request))
    return _object(request)


def query(request: Request, *several: str) -> dict[str, Any]:
    """The query string as a mapping; the names in `several` may be repeated, others must not be."""
    found: dict[str, Any] = {}
    for name, value in _pairs(request._request.META.get("QUERY_STRING", "")):
        if name in several:
            found.setdefault(name, []).append(value)
        elif name in found:
            raise Invalid({name: ["Send this once."]})
        else:
            found[name] = value
    return found


def _pairs(query_string: str) -> list[tuple[str, str]]:
    """WSGI passes each byte as one character; the bytes must be UTF-8, percent-encoded or not."""
    try:
        return parse_qsl(
            query_string.encode("latin-1").decode("utf-8"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=settings.DATA_UPLOAD_MAX_NUMBER_FIELDS,
        )
    except UnicodeError:
        raise Invalid({"query": ["The query string is not valid UTF-8."]}) from None
    except ValueError:
        raise Invalid({"query": ["The query string has too many fields."]}) from None


def query_or_body(request: Request) -> dict[str, Any]:
    """The fields of the query string and of the body; none may be in both."""
    found = query(request)
    sent = _object(request)
    for name in found.keys() & sent.keys():
        raise Invalid({name: ["Send this once, in the query string or in the body."]})
    return found | sent


class LengthRequired(Problem):
    """Without Content-Length Django reads nothing, so a chunked body would look empty."""

    status = 411
    code = "length_required"
    detail = "Send the body with a Content-Length header, not in chunks."


class Encoded(Problem):
    """Bodies are not decompressed, so a compressed one would be read as garbage."""

    status = 415
    code = "unsupported_media_type"
    detail = "Send the body as it is, without a Content-Encoding."


def check_body(request: Request) -> None:
    """Refuse a body that would be read wrongly; to be called before it is read."""
    if "HTTP_TRANSFER_ENCODING" in request.META and not request.META.get("CONTENT_LENGTH"):
        raise LengthRequired
    if request.META.get("HTTP_CONTENT_ENCODING", "identity").lower() != "identity":
        raise Encoded


def _object(request: Request) -> dict[str, Any]:
    check_body(request)
    if not isinstance(request.data, dict):
        raise Invalid({"body": ["Send a JSON object."]})
    return dict(request.data)
