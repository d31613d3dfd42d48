"""Asking the fast language model for JSON of a given shape. The only file that asks one; it logs no key and no text."""

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
# Nobody's answer to one of our questions is longer.
LONGEST_ANSWER = 1_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model wrote, unchecked, and what it cost."""

    text: str
    tokens: int


class Unreadable(Exception):
    """The model answered, but not with what was asked for; `reason` says what was wrong, never what it wrote."""

    def __init__(self, reason: str, tokens: int = 0) -> None:
        self.reason = reason
        self.tokens = tokens
        super().__init__(reason)

    @property
    def told(self) -> str:
        """To people, when its second chance is gone."""
        return f"The language model was asked twice, and its answer is unusable: {self.reason}."


def can_ask(instance: Instance) -> bool:
    """Whether a language model reaches this instance. Asks nobody."""
    provider = provider_for(instance)
    return provider is not None and bool(provider.chat_model)


def ask(instance: Instance, prompt: Prompt, correcting: str = "") -> Answer:
    """One answer, or Unavailable. May take a minute; not for transactions."""
    refuse_in_transaction()
    provider = _provider(instance)
    return _breaker(provider).ask(
        lambda: _ask_patiently(provider, prompt, correcting), consequence="The language model is left alone"
    )


def ask_twice(instance: Instance, prompt: Prompt, read: Callable[[str], T]) -> tuple[T, int]:
    """What `read` makes of the answer, and what it cost. An answer that is of no use gets one more chance, with what
    was wrong about it; then it is Unreadable."""
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
    """The JSON in an answer, also from within a fence; Unreadable when there is none."""
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
    """Drop what this process remembers: connections and failures."""
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
    """One for each key and endpoint, so that connections are used again; a new key is a new client."""
    return provider.client(timeout=SECONDS)


@lru_cache(maxsize=1024)
def _breaker(provider: Provider) -> Breaker:
    return Breaker()
