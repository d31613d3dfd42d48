"""Find the chunks without a vector, store vectors, and keep the embedding state of memories in step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from instances.models import Instance
from memories.embedding.answers import Vector
from memories.embedding.backfill_sql import (
    ALL,
    BATCH,
    LOCK_ALL_READY,
    LOCK_READY,
    MARK_PENDING,
    MARK_READY,
    PENDING,
    REFUSED,
    REUSE,
    STORE,
    STORE_BY_MEMORY,
    VECTOR_TYPE,
)
from memories.indexing import embedded_text
from memories.models import Chunk, Memory
from memories.vocabulary import EmbeddingState
from memoryconsole.connections import without_waiting_for_the_disk
from memoryconsole.postgres.halfvec import Vectors

START = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk without a vector; `is_known` if another chunk with the same text has one."""

    id: UUID
    memory_id: UUID
    text: str
    is_known: bool


class Missing:
    """Walks once over the chunks that have no vector of a generation."""

    def __init__(self, instance: Instance, generation: int) -> None:
        self.parameters = _from_the_start(instance, generation)
        is_searched = generation == instance.embedding_generation
        self.source, self.order = (PENDING, "m.id, c.id") if is_searched else (ALL, "c.id")

    def count(self) -> int:
        return _count(self.source, self.parameters)

    def next(self, limit: int) -> list[Piece]:
        """The next chunks, at most `limit`; empty at the end."""
        with connection.cursor() as cursor:
            cursor.execute(BATCH.format(source=self.source, order=self.order), self.parameters | {"limit": limit})
            rows = cursor.fetchall()
        if rows:
            self.parameters |= {"chunk": rows[-1][0], "memory": rows[-1][1]}
        return [Piece(id, memory, embedded_text(who, text), is_known) for id, memory, who, text, is_known in rows]


def count_refused(instance: Instance, generation: int) -> int:
    """How many chunks belong to memories whose text the embedder refused, until somebody has it tried again."""
    return _count(REFUSED, _from_the_start(instance, generation))


def _from_the_start(instance: Instance, generation: int) -> dict[str, Any]:
    return parameters(instance, generation) | {"memory": START, "chunk": START}


def _count(source: str, values: Mapping[str, Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) {source}", values)
        return int(cursor.fetchone()[0])


def parameters(instance: Instance, generation: int) -> dict[str, Any]:
    return {"instance": instance.id, "generation": generation, "searched": instance.embedding_generation}


def copy_known(instance: Instance, generation: int, pieces: Sequence[Piece]) -> list[Piece]:
    """Copy the vectors of texts that have one; the pieces that are still to be embedded are returned."""
    if not pieces:
        return []
    with without_waiting_for_the_disk(), connection.cursor() as cursor:
        cursor.execute(REUSE, parameters(instance, generation) | {"ids": [piece.id for piece in pieces]})
        copied = {chunk_id for (chunk_id,) in cursor.fetchall()}
    return [piece for piece in pieces if piece.id not in copied]


def store(instance: Instance, generation: int, vectors: Mapping[UUID, Vector]) -> None:
    """Store vectors, given by chunk id."""
    with without_waiting_for_the_disk():
        _write(STORE, instance, generation, vectors)


def store_by_memory(instance: Instance, generation: int, vectors: Mapping[UUID, Vector]) -> None:
    """Store vectors, given by memory id, in the caller's transaction, and mark the memories ready.

    Each of these memories must be a single chunk.
    """
    _write(STORE_BY_MEMORY, instance, generation, vectors)


def _write(statement: str, instance: Instance, generation: int, vectors: Mapping[UUID, Vector]) -> None:
    # In the order of their ids: two batches cannot deadlock then.
    ids = sorted(vectors)
    with connection.cursor() as cursor:
        cursor.execute(VECTOR_TYPE)
        values = Vectors.of([vectors[id] for id in ids], cursor.fetchone()[0])
        cursor.execute(statement, parameters(instance, generation) | {"ids": ids, "vectors": values})


def mark_ready(instance: Instance, generation: int, memories: set[UUID] | None) -> None:
    """Mark those of the memories, or of all if `None`, that have all their vectors of the generation in use."""
    values = parameters(instance, generation) | {"searched": generation}
    with without_waiting_for_the_disk(), connection.cursor() as cursor:
        if memories is None:
            cursor.execute(LOCK_ALL_READY, values)
        else:
            cursor.execute(LOCK_READY, values | {"memories": [*memories]})
        locked = [id for (id,) in cursor.fetchall()]
        if locked:
            cursor.execute(MARK_READY, values | {"memories": locked})


def mark_pending(instance: Instance, generation: int) -> int:
    """Mark the memories that are ready but lack a vector of the generation in use; returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(MARK_PENDING, parameters(instance, generation) | {"searched": generation})
        return int(cursor.rowcount)


def mark_failed(instance: Instance, piece: Piece, reason: str) -> None:
    """Mark the memory whose text was refused, unless the text has changed: a new text has not been tried yet."""
    rows = Memory.objects.filter(instance=instance, id=piece.memory_id)
    chunk = Chunk.objects.filter(instance=instance, id=piece.id, version_id__isnull=True)
    with transaction.atomic():
        # Lock first, then check: see `LOCK`.
        if rows.select_for_update(no_key=True).exists() and chunk.exists():
            rows.update(embedding=EmbeddingState.FAILED, embedding_error=reason)
