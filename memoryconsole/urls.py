"""Every URL of the console and the API, grouped by prefix."""

from django.urls import include, path, re_path

from memoryconsole import health_views
from memoryconsole.api import not_found
from memoryconsole.api_docs import Docs, Schema
from memoryconsole.mcp_gateway import Gateway
from memoryconsole.metrics import Metrics

urlpatterns = [
    # First, because most requests come from programs and Django tries the patterns in order.
    path("api/v1/", include("memoryconsole.api_urls")),
    path("api/schema", Schema.as_view(), name="api-schema"),
    path("api/docs", Docs.as_view(), name="api-docs"),
    re_path(r"^api(?:/|$)", not_found, name="api-not-found"),
    path("", include("memories.urls")),
    path("", include("accounts.urls")),
    path("", include("instances.urls")),
    path("", include("conversations.urls")),
    path("healthz", health_views.healthz, name="healthz"),
    path("readyz", health_views.readyz, name="readyz"),
    path("metrics", Metrics.as_view(), name="metrics"),
    path("mcp", Gateway.as_view(), name="mcp"),
    path("mcp/", not_found, name="mcp-not-found"),
]

handler400 = "memoryconsole.error_pages.bad_request"
handler404 = "memoryconsole.error_pages.not_found"
handler500 = "memoryconsole.error_pages.server_error"
