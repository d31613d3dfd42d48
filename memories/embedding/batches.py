"""Texts on their way to the embedder and back, in batches: a few are away while the database stores another one."""

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

HARMLESS = "tea"
# So many requests at once, of an API that answers soon: one that takes its time is not asked again before it is done,
# or all of them would come too late.
ABREAST = 4
SOON = TEXTS_SECONDS / 6


@dataclass(slots=True)
class Away:
    """A batch whose texts are being embedded. Those in `later` get the vector of a text that has one by then."""

    pieces: Sequence[Piece]
    asked: Sequence[Piece]
    later: Sequence[Piece]
    since: float
    answer: Future[dict[str, Vector]]


def embed_batches(instance: Instance, generation: int, batches: Iterator[Sequence[Piece]]) -> Iterator[int]:
    """Give batches their vectors, in their order; how many each of them was, once it has them.

    Raises `Unavailable` when the embedder does not answer, after storing what else was answered until then.
    """
    away: deque[Away] = deque()
    failure: Unavailable | None = None
    abreast = 1
    while True:
        while failure is None and len(away) < abreast and (pieces := next(batches, None)):
            away.append(_send(instance, generation, pieces, away))
        if not away:
            break
        batch = away.popleft()
        try:
            _receive(instance, generation, batch)
        except Unavailable as unavailable:
            failure = failure or unavailable
            continue
        abreast = ABREAST if monotonic() - batch.since < SOON else 1
        yield len(batch.pieces)
    if failure:
        raise failure


def _send(instance: Instance, generation: int, pieces: Sequence[Piece], away: Iterable[Away]) -> Away:
    """Ask for each text once, and not for those another batch is asking for."""
    known = {piece.text for batch in away for piece in batch.asked}
    later = [piece for piece in pieces if piece.has_twin or piece.text in known]
    asked = [piece for piece in pieces if not piece.has_twin and piece.text not in known]
    texts = list(dict.fromkeys(piece.text for piece in asked))
    embed = embedder(instance, model=_model(instance, generation)) if texts else None
    answer = in_background(lambda: dict(zip(texts, embed(texts), strict=True)) if embed else {}, name="embedding")
    return Away(pieces, asked, later, monotonic(), answer)


def _receive(instance: Instance, generation: int, batch: Away) -> None:
    if not batch.answer.done():
        release_connection()
    _store_answer(instance, generation, batch.asked, batch.answer)
    unknown = [replace(piece, has_twin=False) for piece in copy_known(instance, generation, batch.later)]
    if unknown:
        _receive(instance, generation, _send(instance, generation, unknown, away=()))
    if generation == instance.embedding_generation:
        mark_ready(instance, generation, {piece.memory_id for piece in batch.pieces})


def _store_answer(
    instance: Instance, generation: int, pieces: Sequence[Piece], answer: Future[dict[str, Vector]]
) -> None:
    """When the API refuses a batch, it is asked text by text, so that one text cannot hold up the others."""
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
        embed_texts(instance, [HARMLESS], model=_model(instance, generation))
    except Unavailable:
        return True
    return False


def _model(instance: Instance, generation: int) -> str:
    """The one that made the vectors in use, or the one that is wanted."""
    return instance.embedding_model if generation == instance.embedding_generation else ""
