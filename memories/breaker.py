"""A circuit breaker: after a few failures in a row, calls to a service fail at once for a while."""

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
    """The state of one service, kept in this process."""

    def __init__(self) -> None:
        self._reason = ""
        self._lock = Lock()
        self._failures = 0
        self._closed_again_at: float | None = None

    def ask(self, ask: Callable[[], T], *, consequence: str) -> T:
        """Return the answer or raise Unavailable, at once if the breaker is open. `consequence` is for the log."""
        seconds = self._seconds_left()
        if seconds:
            raise Unavailable("breaker_open", self._reason, seconds)
        release_connection()
        try:
            answer = ask()
        except Unavailable as problem:
            # A refused question is a fault of the question; the service works.
            if problem.code == "refused":
                self._succeeded()
            elif self._failed(problem):
                logger.warning("%s for a while: %s", consequence, problem.code)
            raise
        self._succeeded()
        return answer

    def _seconds_left(self) -> float:
        """How long callers must not try. When the time is up, the first caller gets 0 and the next ones wait again."""
        with self._lock:
            if self._closed_again_at is None:
                return 0.0
            left = self._closed_again_at - time.monotonic()
            if left > 0:
                return left
            # Set here and not when the trial fails, so that a trial that never ends cannot block the breaker for ever.
            self._closed_again_at = time.monotonic() + OPEN_SECONDS
            return 0.0

    def _succeeded(self) -> None:
        with self._lock:
            self._failures = 0
            self._closed_again_at = None

    def _failed(self, problem: Unavailable) -> bool:
        """Count a failure; return whether it opened the breaker. A key that is not accepted opens it at once."""
        with self._lock:
            self._reason = problem.reason
            self._failures += 1
            if self._failures < FAILURES and problem.code != "unauthorized":
                return False
            was_open = self._closed_again_at is not None
            self._closed_again_at = time.monotonic() + OPEN_SECONDS
            return not was_open
