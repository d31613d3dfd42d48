"""Calling an OpenAI-compatible API: with a time limit, and with every failure translated into `Unavailable`.

`api` is the name of the API in error messages: "embeddings API", "language model".
"""

import math
import time
from collections.abc import Callable
from concurrent.futures import Future
from email.utils import parsedate_to_datetime
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from django.db import connection

if TYPE_CHECKING:
    from openai import APIStatusError

T = TypeVar("T")

LONGEST_RETRY_AFTER = 600.0
# Failures that may be over in a moment, so that another attempt makes sense.
PASSING = ("rate_limited", "timeout", "unreachable", "server_error", "bad_answer")


class Unavailable(Exception):
    """There is no answer right now: `reason` is a sentence for people, `code` a short id."""

    def __init__(self, code: str, reason: str, retry_after: float | None = None) -> None:
        self.code = code
        self.reason = reason
        self.retry_after = retry_after
        super().__init__(reason)


def refuse_in_transaction() -> None:
    """Raise if a transaction is open, other than the one that Django's test case opens around each test."""
    if any(not getattr(block, "_from_testcase", False) for block in connection.atomic_blocks):
        raise RuntimeError("External APIs are called before or after a transaction, never inside one.")


def translated(ask: Callable[[], T], *, api: str, model: str) -> T:
    """Return the answer of `ask`, or raise `Unavailable` whatever went wrong."""
    import httpx2
    import openai

    try:
        return ask()
    except openai.APIStatusError as error:
        raise _refused(api, model, error) from None
    except openai.APITimeoutError:
        raise too_late(api) from None
    except (openai.APIConnectionError, httpx2.HTTPError, httpx2.InvalidURL):
        raise Unavailable("unreachable", f"The {api} cannot be reached from this server.") from None
    # The library does not validate answers: one that is not JSON or has an unexpected shape ends up here.
    except (openai.OpenAIError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError):
        raise unusable(api, "it cannot be read") from None


def within(seconds: float, ask: Callable[[], T], *, api: str) -> T:
    """Run `ask` in a thread and stop waiting for it after some seconds.

    The library's time-out applies to each read, and a DNS lookup has none. So the thread may be left running.
    """
    try:
        return in_background(ask, name=api).result(seconds)
    except TimeoutError:
        raise too_late(api) from None


def in_background(ask: Callable[[], T], *, name: str) -> Future[T]:
    """Run `ask` in a daemon thread, which does not keep the process from ending."""
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=run, name=name, daemon=True).start()
    return answer


def too_late(api: str) -> Unavailable:
    return Unavailable("timeout", f"The {api} did not answer in time.")


def unusable(api: str, why: str) -> Unavailable:
    return Unavailable("bad_answer", f"The answer of the {api} is unusable: {why}.")


def _refused(api: str, model: str, error: "APIStatusError") -> Unavailable:
    status, retry_after = error.status_code, _retry_after(error)
    if status == 401:
        return Unavailable("unauthorized", f"The {api} does not accept the key.")
    if status == 403:
        return Unavailable("unauthorized", f"The {api} does not let this key use {model}.")
    if status == 404:
        return Unavailable("unknown_model", f"The {api} does not know {model}.")
    if status == 429 and error.code == "insufficient_quota":
        return Unavailable("rate_limited", "The quota of the key is used up.", LONGEST_RETRY_AFTER)
    if status == 429:
        return Unavailable("rate_limited", f"The {api} is limiting how often it may be asked.", retry_after)
    if status in (408, 409) or status >= 500:
        return Unavailable("server_error", f"The {api} failed with status {status}.", retry_after)
    return Unavailable("refused", f"The {api} refused the request with status {status}.")


def _retry_after(error: "APIStatusError") -> float | None:
    """The Retry-After header in seconds, whether it has seconds or a date; None if it cannot be read."""
    value = error.response.headers.get("retry-after", "")
    try:
        seconds = float(value) if not value[:1].isalpha() else parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, TypeError, LookupError, OverflowError):
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER) if math.isfinite(seconds) else None
