"""A ceiling on one caller's requests, so that a runaway loop cannot starve everybody else.

Counted in the web process: `up` runs one. Behind several, each allows its own share of the limit.
"""

import threading
import time
from typing import TYPE_CHECKING

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from accounts.access import Actor

if TYPE_CHECKING:
    from rest_framework.views import APIView

_lock = threading.Lock()
_counts: dict[object, int] = {}
_minute = 0


def allow(caller: object, most: int) -> bool:
    """Count this, and say whether it is within what the caller may do in a minute."""
    global _minute
    minute = int(time.time() // 60)
    with _lock:
        if minute != _minute:
            _counts.clear()
            _minute = minute
        _counts[caller] = _counts.get(caller, 0) + 1
        return _counts[caller] <= most


class PerCallerThrottle(BaseThrottle):
    def allow_request(self, request: Request, view: "APIView") -> bool:
        caller = request.user.id if isinstance(request.user, Actor) else self.get_ident(request)
        return allow(caller, settings.API_REQUESTS_PER_MINUTE)

    def wait(self) -> float:
        return 60 - time.time() % 60
