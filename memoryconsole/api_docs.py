"""`/api/schema`, the OpenAPI description, and `/api/docs`, the page that shows it."""

import functools
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response

from memoryconsole.endpoints import Endpoint


@functools.cache
def description() -> dict[str, Any]:
    """Generated once, because it takes a while and is the same for everybody."""
    schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return schema


class Schema(Endpoint):
    authentication_classes = ()
    permission_classes = ()
    schema = None

    def get(self, request: Request) -> Response:
        return Response(description())


class Docs(SpectacularSwaggerSplitView):
    """The library's page has inline styles, which our Content-Security-Policy does not allow."""

    authentication_classes = ()
    permission_classes = ()
    url = "/api/schema"
    template_name = "api_docs.html"
