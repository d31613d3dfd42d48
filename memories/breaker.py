"""A circuit breaker: after a few failures in a row nobody is made to wait for a service that is down."""

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from memories.asking import Unavailable
from memoryconsole.connections import release_connection

logger = logging.getLogger(__name__)
T = TypeVar("T")

FAILURES = 3
OPEN_SECONDS = 20.0


class Breaker:
    """Of one service, for as long as the process lives."""

    def __init__(self) -> None:
        self._reason = ""
        self._lock = Lock()
        self._failures = 0
        self._closed_again_at: float | None = None

    def ask(self, ask: Callable[[], T], *, consequence: str) -> T:
        """The answer, or Unavailable: at once while it is open. `consequence` is logged when it opens."""
        seconds = self._seconds_left()
        if seconds:
            raise Unavailable("breaker_open", self._reason, seconds)
        release_connection()
        try:
            answer = ask()
        except Unavailable as problem:
            # What it refuses says something about the question, not about the service.
            if problem.code == "refused":
                self._succeeded()
            elif self._failed(problem):
                logger.warning("%s for a while: %s", consequence, problem.code)
            raise
        self._succeeded()
        return answer

    def _seconds_left(self) -> float:
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

    def _succeeded(self) -> None:
        with self._lock:
            self._failures = 0
            self._closed_again_at = None

    def _failed(self, problem: Unavailable) -> bool:
        """Whether this failure opened it; a key that is refused is going to be refused again."""
        with self._lock:
            self._reason = problem.reason
            self._failures += 1
            if self._failures < FAILURES and problem.code != "unauthorized":
                return False
            was_open = self._closed_again_at is not None
            self._closed_again_at = time.monotonic() + OPEN_SECONDS
            return not was_open
