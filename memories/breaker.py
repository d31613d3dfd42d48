"""A circuit breaker: after a few failures in a row nobody is made to wait for a service that is down."""

import time
from threading import Lock

FAILURES = 3
OPEN_SECONDS = 20.0


class Breaker:
    """Ask `seconds_left` before each attempt and report how it went; `reason` is why it opened."""

    def __init__(self) -> None:
        self.reason = ""
        self._lock = Lock()
        self._failures = 0
        self._closed_again_at: float | None = None

    def seconds_left(self) -> float:
        """How long nobody should try; 0 for whoever may. Once the time is up, one caller may, for all the others."""
        with self._lock:
            if self._closed_again_at is None:
                return 0.0
            left = self._closed_again_at - time.monotonic()
            if left > 0:
                return left
            # The trial moves the time on by itself, so one that never reports does not keep the breaker open for ever.
            self._closed_again_at = time.monotonic() + OPEN_SECONDS
            return 0.0

    def succeeded(self) -> None:
        with self._lock:
            self._failures = 0
            self._closed_again_at = None

    def failed(self, reason: str, *, for_good: bool = False) -> bool:
        """Whether this failure opened it; one that is bound to repeat itself (`for_good`) needs no second."""
        with self._lock:
            self.reason = reason
            self._failures += 1
            if self._failures < FAILURES and not for_good:
                return False
            was_open = self._closed_again_at is not None
            self._closed_again_at = time.monotonic() + OPEN_SECONDS
            return not was_open
