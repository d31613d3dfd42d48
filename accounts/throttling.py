"""A limit on each caller's requests, so that a program in an endless loop cannot starve everybody else.

Each web process counts for itself; `up` runs only one.
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
    """Count a request of this caller; False if there were more than `most` in this minute."""
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
