"""Asking the fast language model for JSON of a given shape. No other file asks one; no key and no text is logged."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from instances.models import Embedder, Instance
from instances.providers import Provider, provider_for
from memories.asking import PASSING, Unavailable, refuse_in_transaction, translated, within
from memories.breaker import Breaker
from memories.learning.prompts import Prompt, correction

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import ChatCompletionMessageParam

T = TypeVar("T")

API = "language model"
SECONDS = 60.0
ATTEMPTS = 2
FIRST_WAIT = 1.0
LONGEST_WAIT = 5.0
# Far more than any valid answer.
LONGEST_ANSWER = 1_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model wrote, unchecked, and how many tokens it cost."""

    text: str
    tokens: int


class Unreadable(Exception):
    """The model's answer cannot be used. `reason` says what is wrong with it, without quoting it."""

    def __init__(self, reason: str, tokens: int = 0) -> None:
        self.reason = reason
        self.tokens = tokens
        super().__init__(reason)

    @property
    def message(self) -> str:
        """For people, after the second attempt."""
        return f"The language model was asked twice, and its answer is unusable: {self.reason}."


def can_ask(instance: Instance) -> bool:
    """Whether this instance has a language model, as far as its settings say."""
    provider = provider_for(instance)
    return provider is not None and bool(provider.chat_model)


def ask(instance: Instance, prompt: Prompt, correcting: str = "") -> Answer:
    """One answer, or `Unavailable`. It may take a minute; must not be called in a transaction."""
    refuse_in_transaction()
    provider = _provider(instance)
    return _breaker(provider).ask(
        lambda: _ask_patiently(provider, prompt, correcting), consequence="The language model is left alone"
    )


def ask_twice(instance: Instance, prompt: Prompt, read: Callable[[str], T]) -> tuple[T, int]:
    """The answer as `read` parses it, and the tokens it cost. If it is `Unreadable`, the model is told why and asked
    once more."""
    first = ask(instance, prompt)
    try:
        return read(first.text), first.tokens
    except Unreadable as unreadable:
        second = ask(instance, prompt, correction(unreadable.reason))
    tokens = first.tokens + second.tokens
    try:
        return read(second.text), tokens
    except Unreadable as unreadable:
        raise Unreadable(unreadable.reason, tokens) from None


def read_json(text: str) -> Any:
    """Parse the JSON of an answer, also in a code fence; raise `Unreadable` if there is none."""
    text = text.strip()
    if text.startswith("```"):
        text = text.strip("`").removeprefix("json")
    if len(text) > LONGEST_ANSWER:
        raise Unreadable("it is far too long")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Unreadable("it is not JSON") from None


def forget() -> None:
    """Drop this process's connections and the state of its circuit breakers."""
    _client.cache_clear()
    _breaker.cache_clear()


def _provider(instance: Instance) -> Provider:
    provider = provider_for(instance)
    if provider is None and instance.embedder == Embedder.AZURE:
        raise Unavailable("no_key", "This server has no Azure OpenAI endpoint and key.")
    if provider is None:
        raise Unavailable("no_key", "No OpenAI or Azure key reaches this instance.")
    if not provider.chat_model:
        raise Unavailable("no_key", "This server names no Azure OpenAI deployment for chat.")
    return provider


def _ask_patiently(provider: Provider, prompt: Prompt, correcting: str, attempt: int = 1) -> Answer:
    try:
        return within(SECONDS, lambda: _request(provider, prompt, correcting), api=API)
    except Unavailable as problem:
        wait = FIRST_WAIT if problem.retry_after is None else problem.retry_after
        if problem.code not in PASSING or problem.code == "timeout" or attempt == ATTEMPTS or wait > LONGEST_WAIT:
            raise
    time.sleep(wait)
    return _ask_patiently(provider, prompt, correcting, attempt + 1)


def _request(provider: Provider, prompt: Prompt, correcting: str) -> Answer:
    def ask() -> Answer:
        answer = _client(provider).chat.completions.create(
            model=provider.chat_model,
            messages=_messages(prompt, correcting),
            response_format={"type": "json_schema", "json_schema": prompt.schema},
            timeout=SECONDS,
        )
        used = answer.usage.total_tokens if answer.usage else 0
        return Answer(answer.choices[0].message.content or "", int(used or 0))

    return translated(ask, api=API, model=provider.chat_model)


def _messages(prompt: Prompt, correcting: str) -> "Sequence[ChatCompletionMessageParam]":
    messages: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": prompt.system},
        {"role": "user", "content": prompt.material},
    ]
    return [*messages, {"role": "user", "content": correcting}] if correcting else messages


@lru_cache(maxsize=64)
def _client(provider: Provider) -> "OpenAI":
    """One client for each key and endpoint, so that connections are reused."""
    return provider.client(timeout=SECONDS)


@lru_cache(maxsize=1024)
def _breaker(provider: Provider) -> Breaker:
    return Breaker()
