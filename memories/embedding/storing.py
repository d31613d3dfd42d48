"""Which vectors are missing, and putting them where they belong."""

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
    HOLD_ALL_READY,
    HOLD_READY,
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
    """A chunk without a vector; `has_twin` when another chunk with the same text has one."""

    id: UUID
    memory_id: UUID
    text: str
    has_twin: bool


class Missing:
    """The chunks without a vector of a generation, from the first to the last, each once."""

    def __init__(self, instance: Instance, generation: int) -> None:
        self.named = parameters(instance, generation) | {"memory": START, "chunk": START}
        is_searched = generation == instance.embedding_generation
        self.source, self.order = (PENDING, "m.id, c.id") if is_searched else (ALL, "c.id")

    def count(self) -> int:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) {self.source}", self.named)
            return int(cursor.fetchone()[0])

    def next(self, most: int) -> list[Piece]:
        """The next ones; none when there are no more."""
        with connection.cursor() as cursor:
            cursor.execute(BATCH.format(source=self.source, order=self.order), self.named | {"limit": most})
            rows = cursor.fetchall()
        if rows:
            self.named |= {"chunk": rows[-1][0], "memory": rows[-1][1]}
        return [Piece(id, memory, embedded_text(who, said), has_twin) for id, memory, who, said, has_twin in rows]


def count_refused(instance: Instance, generation: int) -> int:
    """Chunks of memories that the embedder would not take, as long as nobody has it try again."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*) {REFUSED}", parameters(instance, generation) | {"memory": START, "chunk": START}
        )
        return int(cursor.fetchone()[0])


def parameters(instance: Instance, generation: int) -> dict[str, Any]:
    return {"instance": instance.id, "generation": generation, "searched": instance.embedding_generation}


def copy_known(instance: Instance, generation: int, pieces: Sequence[Piece]) -> list[Piece]:
    """Give those a vector whose text has one already; the others are left to embed."""
    if not pieces:
        return []
    with without_waiting_for_the_disk(), connection.cursor() as cursor:
        cursor.execute(REUSE, parameters(instance, generation) | {"ids": [piece.id for piece in pieces]})
        copied = {chunk_id for (chunk_id,) in cursor.fetchall()}
    return [piece for piece in pieces if piece.id not in copied]


def store(instance: Instance, generation: int, vectors: Mapping[UUID, Vector]) -> None:
    """Vectors by the chunk they belong to."""
    with without_waiting_for_the_disk():
        _write(STORE, instance, generation, vectors)


def store_by_memory(instance: Instance, generation: int, vectors: Mapping[UUID, Vector]) -> None:
    """Vectors by the memory they belong to, which is one chunk and becomes ready; in the caller's transaction."""
    _write(STORE_BY_MEMORY, instance, generation, vectors)


def _write(statement: str, instance: Instance, generation: int, vectors: Mapping[UUID, Vector]) -> None:
    # In the order of their ids, so that two batches cannot wait for each other.
    ids = sorted(vectors)
    with connection.cursor() as cursor:
        cursor.execute(VECTOR_TYPE)
        values = Vectors.of([vectors[id] for id in ids], cursor.fetchone()[0])
        cursor.execute(statement, parameters(instance, generation) | {"ids": ids, "vectors": values})


def mark_ready(instance: Instance, generation: int, memories: set[UUID] | None) -> None:
    """Those of these memories, or of all, that have all their vectors of the generation in use."""
    named = parameters(instance, generation) | {"searched": generation}
    with without_waiting_for_the_disk(), connection.cursor() as cursor:
        if memories is None:
            cursor.execute(HOLD_ALL_READY, named)
        else:
            cursor.execute(HOLD_READY, named | {"memories": [*memories]})
        held = [id for (id,) in cursor.fetchall()]
        if held:
            cursor.execute(MARK_READY, named | {"memories": held})


def mark_pending(instance: Instance, generation: int) -> int:
    """Those that are called ready and have not all their vectors of the generation in use; how many."""
    with connection.cursor() as cursor:
        cursor.execute(MARK_PENDING, parameters(instance, generation) | {"searched": generation})
        return int(cursor.rowcount)


def mark_failed(instance: Instance, piece: Piece, reason: str) -> None:
    """The memory whose text was refused, if it still says that: what took its place has yet to be asked for."""
    rows = Memory.objects.filter(instance=instance, id=piece.memory_id)
    chunk = Chunk.objects.filter(instance=instance, id=piece.id, version_id__isnull=True)
    with transaction.atomic():
        # Held first, then looked at: see `HOLD`.
        if rows.select_for_update(no_key=True).exists() and chunk.exists():
            rows.update(embedding=EmbeddingState.FAILED, embedding_error=reason)
