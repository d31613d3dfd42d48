"""A limit on each caller's requests, so that a program in an endless loop cannot starve everybody else.

Each web process counts for itself; `up` runs only one.
"""

import threading
import time
from ipaddress import ip_address
from typing import TYPE_CHECKING, cast

from django.conf import settings
from django.http import HttpRequest
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from accounts.access import Actor

if TYPE_CHECKING:
    from rest_framework.views import APIView

_lock = threading.Lock()
_counts: dict[object, int] = {}
_minute = 0


def allow(caller: object, most: int) -> bool:
    """Count a request of this caller; False if there were more than `most` in this minute."""
    global _minute
    minute = int(time.time() // 60)
    with _lock:
        if minute != _minute:
            _counts.clear()
            _minute = minute
        _counts[caller] = _counts.get(caller, 0) + 1
        return _counts[caller] <= most


def address_of(request: HttpRequest) -> str:
    """Who sent it, according to the last of as many proxies as PROXIES says."""
    address = BaseThrottle().get_ident(cast(Request, request))  # only reads META
    try:
        return str(ip_address(address))
    except ValueError:
        return str(request.META.get("REMOTE_ADDR", ""))


class PerCallerThrottle(BaseThrottle):
    def allow_request(self, request: Request, view: "APIView") -> bool:
        caller = request.user.id if isinstance(request.user, Actor) else address_of(request._request)
        return allow(caller, settings.API_REQUESTS_PER_MINUTE)

    def wait(self) -> float:
        return 60 - time.time() % 60
