"""`/metrics` for Prometheus: the number of requests and their times, without instances and contents."""

import time
from ipaddress import ip_address

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from rest_framework.exceptions import NotAuthenticated
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.access import Actor
from memoryconsole.endpoints import Endpoint
from memoryconsole.middleware import View

disable_created_metrics()
REQUESTS = Counter("memoryconsole_requests", "Requests answered.", ["method", "route", "status"])
SECONDS = Histogram(
    "memoryconsole_request_seconds",
    "Time to answer a request.",
    ["method", "route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP")


def measure(get_response: View) -> View:
    def middleware(request: HttpRequest) -> HttpResponseBase:
        started = time.perf_counter()
        response = get_response(request)
        method, route = _labels(request)
        SECONDS.labels(method, route).observe(time.perf_counter() - started)
        REQUESTS.labels(method, route, str(response.status_code)).inc()
        return response

    return middleware


def _labels(request: HttpRequest) -> tuple[str, str]:
    """The method and the route. Not the path: it has ids, and callers could make up any number of labels."""
    method = request.method if request.method in METHODS else "other"
    match = request.resolver_match
    return str(method), (match.view_name or match.route or "none") if match else "none"


class FromThisMachineOrAllInstances(BasePermission):
    def has_permission(self, request: Request, view: object) -> bool:
        if isinstance(request.user, Actor):
            return request.user.all_instances
        if not is_local(request):
            raise NotAuthenticated
        return True


def is_local(request: Request) -> bool:
    """Not if a proxy on this machine passes on somebody else's request."""
    if any(header in request.META for header in FORWARDED):
        return False
    try:
        return ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


class Metrics(Endpoint):
    permission_classes = (FromThisMachineOrAllInstances,)
    schema = None

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(generate_latest(REGISTRY), content_type=CONTENT_TYPE_LATEST)
