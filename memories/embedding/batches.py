"""Send texts to the embedder in batches: some are being embedded while the database stores another one."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from time import monotonic

from instances.models import Instance
from memories.asking import Unavailable, in_background
from memories.embedding.answers import Vector
from memories.embedding.embedder import TEXTS_SECONDS, embed_texts, embedder
from memories.embedding.storing import Piece, copy_known, mark_failed, mark_ready, store
from memoryconsole.connections import release_connection

HARMLESS_TEXT = "tea"
# How many requests an API gets at once if it answers quickly. A slow one gets one at a time: all of several would time
# out.
MAX_IN_FLIGHT = 4
QUICK_SECONDS = TEXTS_SECONDS / 6


@dataclass(slots=True)
class Request:
    """A batch whose texts are being embedded: those of `to_embed`.

    The pieces `to_copy` get the vector of the same text, which is stored or on its way in another batch.
    """

    pieces: Sequence[Piece]
    to_embed: Sequence[Piece]
    to_copy: Sequence[Piece]
    sent_at: float
    answer: Future[dict[str, Vector]]


def embed_batches(instance: Instance, generation: int, batches: Iterator[Sequence[Piece]]) -> Iterator[int]:
    """Embed and store batches in their order, and yield the size of each once it is stored.

    Raises `Unavailable` when the embedder does not answer, after storing what it answered to other batches.
    """
    in_flight: deque[Request] = deque()
    failure: Unavailable | None = None
    most = 1
    while True:
        while failure is None and len(in_flight) < most and (pieces := next(batches, None)):
            in_flight.append(_send(instance, generation, pieces, in_flight))
        if not in_flight:
            break
        request = in_flight.popleft()
        try:
            _receive(instance, generation, request)
        except Unavailable as unavailable:
            failure = failure or unavailable
            continue
        most = MAX_IN_FLIGHT if monotonic() - request.sent_at < QUICK_SECONDS else 1
        yield len(request.pieces)
    if failure:
        raise failure


def _send(instance: Instance, generation: int, pieces: Sequence[Piece], in_flight: Iterable[Request]) -> Request:
    """Ask for each text once, and not for texts that another batch has asked for."""
    asked = {piece.text for request in in_flight for piece in request.to_embed}
    to_copy = [piece for piece in pieces if piece.is_known or piece.text in asked]
    to_embed = [piece for piece in pieces if not piece.is_known and piece.text not in asked]
    texts = list(dict.fromkeys(piece.text for piece in to_embed))
    embed = embedder(instance, model=_model(instance, generation)) if texts else None
    answer = in_background(lambda: dict(zip(texts, embed(texts), strict=True)) if embed else {}, name="embedding")
    return Request(pieces, to_embed, to_copy, monotonic(), answer)


def _receive(instance: Instance, generation: int, request: Request) -> None:
    if not request.answer.done():
        release_connection()
    _store_answer(instance, generation, request.to_embed, request.answer)
    unknown = [replace(piece, is_known=False) for piece in copy_known(instance, generation, request.to_copy)]
    if unknown:
        _receive(instance, generation, _send(instance, generation, unknown, in_flight=()))
    if generation == instance.embedding_generation:
        mark_ready(instance, generation, {piece.memory_id for piece in request.pieces})


def _store_answer(
    instance: Instance, generation: int, pieces: Sequence[Piece], answer: Future[dict[str, Vector]]
) -> None:
    """Store the vectors. If the API refused the batch, ask text by text: one bad text must not block the others."""
    try:
        vectors = answer.result()
    except Unavailable as unavailable:
        if unavailable.code != "refused":
            raise
        _embed_one_by_one(instance, generation, pieces)
    else:
        if pieces:
            store(instance, generation, {piece.id: vectors[piece.text] for piece in pieces})


def _embed_one_by_one(instance: Instance, generation: int, pieces: Sequence[Piece]) -> None:
    for piece in pieces:
        try:
            [vector] = embed_texts(instance, [piece.text], model=_model(instance, generation))
            store(instance, generation, {piece.id: vector})
        except Unavailable as unavailable:
            if unavailable.code != "refused" or _refuses_everything(instance, generation):
                raise
            mark_failed(instance, piece, unavailable.reason)


def _refuses_everything(instance: Instance, generation: int) -> bool:
    try:
        embed_texts(instance, [HARMLESS_TEXT], model=_model(instance, generation))
    except Unavailable:
        return True
    return False


def _model(instance: Instance, generation: int) -> str:
    """The model of the vectors in use, or "" for the one the instance wants."""
    return instance.embedding_model if generation == instance.embedding_generation else ""
