"""Vectors for texts, from OpenAI, Azure, an OpenAI-compatible API, or the offline embedder.

No other file calls an embeddings API. `embed_texts` is for indexing: it retries for minutes if necessary. `embed_query`
is for searches: it answers within their time limit or raises. Neither logs a key or a text.
"""

import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any

from django.conf import settings

from instances.models import Embedder, Instance
from instances.providers import Provider, provider_for
from memories.asking import PASSING, Unavailable, refuse_in_transaction, translated, unusable, within
from memories.breaker import Breaker
from memories.embedding import offline
from memories.embedding.answers import API, Vector, unit, vectors_in
from memories.models import DIMENSIONS
from memoryconsole.connections import release_connection

if TYPE_CHECKING:
    from openai import OpenAI

OPENAI_MODELS = ("text-embedding-3-small", "text-embedding-3-large", "text-embedding-ada-002")

TEXTS_SECONDS = 30.0
ATTEMPTS = 4
FIRST_WAIT = 1.0
LONGEST_WAIT = 20.0

QUERY_SECONDS = 2.5
QUICK_WAIT = 0.1

# The API accepts 2,048 texts and 300,000 tokens. A small model on a CPU must get far fewer texts to answer in time.
MAX_INPUTS = 256
MAX_TOKENS = 250_000
BYTES_PER_TOKEN = 3
TEXT_BYTES = 8_000 * BYTES_PER_TOKEN
# A token has at least one byte, so this is within the limit of 8,192 tokens for any text.
SAFE_BYTES = 8_000

CACHED_QUERIES = 4096


@dataclass(frozen=True, slots=True)
class Source:
    """Where vectors come from. `name` is that of the model, or on Azure that of the deployment."""

    provider: Provider
    name: str

    @property
    def model(self) -> str:
        return f"azure:{self.name}" if self.provider.kind == "azure" else self.name

    @property
    def options(self) -> dict[str, Any]:
        is_large = self.name.endswith("text-embedding-3-large")
        if self.provider.kind == "azure":
            is_large = "3-large" in self.name or settings.EMBEDDING_MODEL == "text-embedding-3-large"
        return {"dimensions": DIMENSIONS} if is_large else {}

    @property
    def may_be_short(self) -> bool:
        """Whether this is a custom model: its vectors may have fewer dimensions. Appended zeros change no cosine."""
        return self.provider.kind == "openai" and bool(self.provider.endpoint) and self.name not in OPENAI_MODELS


def model_of(instance: Instance) -> str:
    """The model that this instance wants for its vectors; empty if there is no key for it. Makes no request."""
    if instance.embedder == Embedder.OFFLINE:
        return offline.MODEL
    try:
        return _source(instance).model
    except Unavailable:
        return ""


def search_model_of(instance: Instance) -> str:
    """The model that queries are embedded with: that of the instance's vectors, or of future ones if it has none."""
    return instance.embedding_model or model_of(instance)


def embed_texts(instance: Instance, texts: Sequence[str], *, model: str = "") -> list[Vector]:
    """One vector for each text, in order, or Unavailable. An API may take minutes and is never asked in a transaction.

    `model` is one that the instance has used before; without it, the model that the instance wants is used.
    """
    return [unit(vector) for vector in embedder(instance, model=model)(texts)]


def embedder(instance: Instance, *, model: str = "") -> Callable[[Sequence[str]], list[Vector]]:
    """A function that embeds texts. Threads may call it, because it uses neither the instance nor the database.

    Its vectors are not normalised: the database does that when it stores them.
    """
    if (model or model_of(instance)) == offline.MODEL:
        return _embed_offline
    refuse_in_transaction()
    return partial(_ask_for_all, _source_of(instance, model))


def embed_query(instance: Instance, text: str, *, model: str = "") -> list[float]:
    """The vector to search with, within QUERY_SECONDS, or Unavailable.

    `model` is the one that made the vectors to be searched; the instance may already want another one for new vectors.
    """
    if (model or model_of(instance)) == offline.MODEL:
        return _cached_vector(offline.MODEL, "", text, lambda: _embed_offline([text])[0])
    refuse_in_transaction()
    source = _source_of(instance, model)
    text = _sendable(text, SAFE_BYTES)
    return _cached_vector(source.model, source.provider.endpoint, text, lambda: _ask_with_breaker(source, text))


def _cached_vector(model: str, endpoint: str, text: str, make: Callable[[], Vector]) -> list[float]:
    key = (model, endpoint, sha256(text.encode(errors="surrogatepass")).digest())
    vector = _queries.get(key)
    if vector is None:
        vector = make()
        _queries.put(key, vector)
    return vector.tolist()


def forget() -> None:
    """Clear what this process caches: clients, failures, vectors of queries, lengths of vectors."""
    _client.cache_clear()
    _breaker.cache_clear()
    _queries.clear()
    _lengths.clear()


def _source_of(instance: Instance, model: str) -> Source:
    source = _source(instance)
    if model in ("", source.model):
        return source
    earlier = replace(source, name=model.removeprefix("azure:"))
    if earlier.model != model:
        raise Unavailable("model_changed", "The vectors are being made anew with another model.")
    return earlier


def _source(instance: Instance) -> Source:
    provider = provider_for(instance)
    if provider is None and instance.embedder == Embedder.AZURE:
        raise Unavailable("no_azure", "This server has no Azure OpenAI endpoint and key.")
    if provider is None:
        raise Unavailable("no_key", "No OpenAI or Azure key reaches this instance.")
    if provider.kind == "openai":
        return Source(provider, settings.EMBEDDING_MODEL)
    if not settings.AZURE_OPENAI_EMBEDDING_DEPLOYMENT:
        raise Unavailable("no_azure", "This server names no Azure OpenAI deployment for embeddings.")
    return Source(provider, settings.AZURE_OPENAI_EMBEDDING_DEPLOYMENT)


def _embed_offline(texts: Sequence[str]) -> list[Vector]:
    return [array("f", offline.embed(text)) for text in texts]


def _ask_for_all(source: Source, texts: Sequence[str]) -> list[Vector]:
    release_connection()
    return [vector for batch in _batches(texts) for vector in _ask_for_batch(source, batch)]


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    tokens = 0
    for text in texts:
        sendable = _sendable(text, TEXT_BYTES)
        more = len(sendable.encode()) // BYTES_PER_TOKEN + 1
        if batch and (len(batch) == MAX_INPUTS or tokens + more > MAX_TOKENS):
            yield batch
            batch, tokens = [], 0
        batch.append(sendable)
        tokens += more
    if batch:
        yield batch


def _sendable(text: str, limit: int) -> str:
    """The text as the API accepts it: without lone surrogates and NUL, at most `limit` bytes, never blank."""
    cut = text.encode(errors="replace")[:limit].decode(errors="ignore").replace("\0", " ")
    return cut if cut.strip() else "(blank)"


def _ask_for_batch(source: Source, texts: list[str]) -> list[Vector]:
    try:
        return _ask_patiently(source, texts)
    except Unavailable as problem:
        shorter = [_sendable(text, SAFE_BYTES) for text in texts]
        # The number of tokens is an estimate: a long text of rare characters may exceed the limit after all.
        if problem.code != "refused" or shorter == texts:
            raise
    return _ask_patiently(source, shorter)


def _ask_patiently(source: Source, texts: list[str], attempt: int = 1) -> list[Vector]:
    try:
        return _ask(source, texts, TEXTS_SECONDS)
    except Unavailable as problem:
        wait = FIRST_WAIT * 2 ** (attempt - 1) if problem.retry_after is None else problem.retry_after
        if problem.code not in PASSING or attempt == ATTEMPTS or wait > LONGEST_WAIT:
            raise
    time.sleep(wait)
    return _ask_patiently(source, texts, attempt + 1)


def _ask_with_breaker(source: Source, text: str) -> Vector:
    consequence = f"Searches do without vectors of {source.model}"
    return _breaker(source.provider).ask(lambda: _ask_quickly(source, text), consequence=consequence)


def _ask_quickly(source: Source, text: str) -> Vector:
    """Two attempts at most: the second only if the first failed so early that there is time for another."""
    end = time.monotonic() + QUERY_SECONDS
    try:
        return unit(_ask(source, [text], QUERY_SECONDS)[0])
    except Unavailable as problem:
        pause = QUICK_WAIT if problem.retry_after is None else problem.retry_after
        left = end - time.monotonic() - pause
        if problem.code not in ("unreachable", "server_error", "bad_answer") or left < QUERY_SECONDS / 2:
            raise
    time.sleep(pause)
    return unit(_ask(source, [text], left)[0])


def _ask(source: Source, texts: list[str], seconds: float) -> list[Vector]:
    return within(seconds, lambda: _request(source, texts, seconds), api=API)


def _request(source: Source, texts: list[str], seconds: float) -> list[Vector]:
    def ask() -> list[Vector]:
        embeddings = _client(source.provider).embeddings.with_raw_response
        # Texts go into the body as they are: the library would validate each of them, which takes longer than all that
        # is done with its vector.
        body = {"input": texts}
        answer = embeddings.create(
            model=source.name, input="", extra_body=body, encoding_format="base64", timeout=seconds, **source.options
        )
        return _padded(source, vectors_in(answer.content, len(texts)))

    return translated(ask, api=API, model=source.name)


def _padded(source: Source, vectors: list[Vector]) -> list[Vector]:
    """Append zeros up to DIMENSIONS. An answer with too many dimensions, or not as many as before, is unusable."""
    lengths = {len(vector) for vector in vectors}
    expected = DIMENSIONS
    if source.may_be_short and len(lengths) == 1 and max(lengths) <= DIMENSIONS:
        expected = _lengths.setdefault((source.provider.endpoint, source.name), max(lengths))
    if lengths != {expected}:
        raise unusable(API, f"its vectors have {_listed(lengths)} dimensions instead of {expected}")
    for vector in vectors:
        vector.frombytes(bytes(vector.itemsize * (DIMENSIONS - expected)))
    return vectors


def _listed(lengths: set[int]) -> str:
    return " and ".join(str(length) for length in sorted(lengths)[:3])


@lru_cache(maxsize=64)
def _client(provider: Provider) -> "OpenAI":
    """One client per key and endpoint, so that connections are reused."""
    return provider.client(timeout=TEXTS_SECONDS)


@lru_cache(maxsize=1024)
def _breaker(provider: Provider) -> Breaker:
    return Breaker()


class _QueryCache:
    """The vectors of the latest queries."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._cached: OrderedDict[tuple[str, str, bytes], Vector] = OrderedDict()

    def get(self, key: tuple[str, str, bytes]) -> "Vector | None":
        with self._lock:
            if key not in self._cached:
                return None
            self._cached.move_to_end(key)
            return self._cached[key]

    def put(self, key: tuple[str, str, bytes], vector: Vector) -> None:
        with self._lock:
            self._cached[key] = vector
            self._cached.move_to_end(key)
            if len(self._cached) > CACHED_QUERIES:
                self._cached.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._cached.clear()


_queries = _QueryCache()
# How many dimensions the vectors of a custom model have, taken from its first answer: it must not change.
_lengths: dict[tuple[str, str], int] = {}
