"""Learning memories without duplicates: each new memory is compared with the nearest active ones of the same owner.

The same text is only marked as seen again. Another wording updates the old memory, whose text is kept as a version. A
contradiction is stored beside it and waits for a person. Anything else is new. Nearness is decided by vectors, or by
words if there are none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from accounts.access import Scope
from memories.asking import Unavailable
from memories.embedding import answers
from memories.embedding.backfill import store_vectors
from memories.embedding.embedder import embed_texts, model_of
from memories.filters import Filters, unexpired
from memories.indexing import read_settings_again, text_to_embed
from memories.learning.differences import differences, overlap
from memories.learning.facts import same_text
from memories.models import Memory
from memories.review.inbox import approve_many
from memories.search.hybrid import search
from memories.store import apply, insert
from memories.versions import Cause
from memories.vocabulary import EmbeddingState, Review, Role, Status
from memoryconsole.postgres.halfvec import HalfVector
from memoryconsole.turns import wait_for_turn

Event = Literal["created", "updated", "flagged", "seen"]

OTHER_WORDS = "said again in other words"
LOOKED_AT = 5
# Without vectors: the share of common words from which two texts are near each other.
ALIKE = 0.8
# For memories without an owner, the nearest of the whole instance are first found by sketches, then by vectors.
NEIGHBOURHOOD = 1_000


@dataclass(frozen=True, slots=True)
class Vector:
    model: str
    values: answers.Vector


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of learning a memory; `memory` is where it is stored now."""

    event: Event
    memory: Memory
    known: Memory | None = None
    """The memory that was already there, before any change."""
    similarity: float | None = None
    reason: str = ""

    @property
    def counted(self) -> Event:
        """Like `event`, but a new memory that waits for review is counted as flagged."""
        return "flagged" if self.event == "created" and self.memory.review == Review.PENDING else self.event


@dataclass(frozen=True, slots=True)
class Near:
    memory: Memory
    similarity: float | None


def vectors_of(scope: Scope, memories: Sequence[Memory]) -> Sequence[Vector | None]:
    """A vector for each memory; to be called before the transaction. None if there is no embedder, it fails, or the
    instance is changing its model."""
    instance, model = scope.instance, model_of(scope.instance)
    if not model or instance.embedding_model not in ("", model):
        return [None] * len(memories)
    try:
        return [Vector(model, values) for values in embed_texts(instance, [text_to_embed(new) for new in memories])]
    except Unavailable:
        return [None] * len(memories)


def take_turn(scope: Scope) -> None:
    """Wait until nobody else is learning in this instance; holds until the transaction ends."""
    wait_for_turn(f"learn {scope.instance.id}")


def learn(scope: Scope, memories: Sequence[Memory], vectors: Sequence[Vector | None]) -> list[Outcome]:
    """Store the memories, inside the caller's transaction. Only one caller at a time per instance, so that two workers
    cannot both decide that the same memory is new."""
    if not memories:
        return []
    take_turn(scope)
    read_settings_again(scope)
    same_by_hash = _same_by_hash(scope, memories)
    return [_learn(scope, new, vector, same_by_hash) for new, vector in zip(memories, vectors, strict=True)]


def _learn(scope: Scope, new: Memory, vector: Vector | None, same_by_hash: Mapping[bytes, Memory]) -> Outcome:
    known = same_by_hash.get(bytes(new.content_hash))
    near = [Near(known, None)] if known else _nearest(scope, new, vector)
    if not near:
        return _create(scope, new, vector)
    same = next((found for found in near if same_text(found.memory.content) == same_text(new.content)), None)
    if same and not _approves(new, same.memory):
        return _see_again(same)
    agreeing = same or next((found for found in near if not differences(found.memory.content, new.content)), None)
    nearest = agreeing or _contradicted(near)
    memory = _hold(scope, new, nearest.memory)
    if memory is None:
        return _learn(scope, new, vector, {})
    if memory.content != nearest.memory.content:
        return _flag(scope, new, nearest, "near a memory that somebody has just changed", vector)
    if agreeing is None:
        kinds = " and ".join(differences(memory.content, new.content))
        return _flag(scope, new, nearest, f"near a memory that differs in {kinds}", vector)
    if new.review == Review.PENDING and memory.review == Review.APPROVED:
        return _flag(scope, new, nearest, "another wording, which waits for review", vector)
    return _update(scope, new, nearest, memory, vector)


def _contradicted(near: Sequence[Near]) -> Near:
    """The nearest in use: one that waits may be rejected, and then nobody would know of the contradiction."""
    return next((found for found in near if found.memory.review == Review.APPROVED), near[0])


def _hold(scope: Scope, new: Memory, found: Memory) -> Memory | None:
    """Lock the memory that was found. None if somebody has deleted or superseded it since."""
    return _comparable(scope, new).select_for_update().filter(id=found.id).first()


def _approves(new: Memory, known: Memory) -> bool:
    """Whether the known memory waits only because it was not important enough, and the new one is."""
    waits = known.review == Review.PENDING and known.conflicts_with_id is None
    return waits and new.review == Review.APPROVED


def _see_again(same: Near) -> Outcome:
    Memory.objects.filter(pk=same.memory.pk).update(last_seen_at=timezone.now())
    return Outcome("seen", same.memory, same.memory, 1.0, "the same text")


def _create(scope: Scope, new: Memory, vector: Vector | None) -> Outcome:
    _insert(scope, new, vector)
    return Outcome("created", new)


def _flag(scope: Scope, new: Memory, near: Near, reason: str, vector: Vector | None) -> Outcome:
    new.review = Review.PENDING
    new.conflicts_with_id = near.memory.id
    _insert(scope, new, vector)
    return Outcome("flagged", new, near.memory, near.similarity, reason)


def _update(scope: Scope, new: Memory, near: Near, memory: Memory, vector: Vector | None) -> Outcome:
    message_id = new.source_message_ids[0] if new.source_message_ids else None
    approves = _approves(new, memory)
    apply(scope, memory, _updated_fields(memory, new), Cause(OTHER_WORDS, near.similarity, message_id))
    Memory.objects.filter(pk=memory.pk).update(last_seen_at=timezone.now())
    if approves:
        approve_many(scope, [memory.id])
    if vector and memory.embedding == EmbeddingState.PENDING:
        store_vectors(scope, {memory.id: vector.values}, vector.model)
    return Outcome("updated", memory, near.memory, near.similarity, OTHER_WORDS)


def _updated_fields(memory: Memory, new: Memory) -> dict[str, Any]:
    """The fields that the new memory changes; visibility, key, tags and pin stay as they are."""
    return {
        "content": new.content,
        "importance": max(memory.importance, new.importance),
        "confidence": new.confidence,
        "occurred_at": new.occurred_at or memory.occurred_at,
        "source_conversation_id": new.source_conversation_id,
        "source_message_ids": new.source_message_ids,
    }


def _insert(scope: Scope, new: Memory, vector: Vector | None) -> None:
    if vector and scope.instance.embedding_model in ("", vector.model):
        new.embedding = EmbeddingState.READY
    insert(scope, [new])
    if vector:
        store_vectors(scope, {new.id: vector.values}, vector.model)


def _same_by_hash(scope: Scope, memories: Sequence[Memory]) -> dict[bytes, Memory]:
    """Existing memories with exactly the same text, by its hash. `memories` all have the same owner."""
    rows = _comparable(scope, memories[0]).filter(content_hash__in=[new.content_hash for new in memories])
    return {bytes(memory.content_hash): memory for memory in rows.order_by("-id")}


def _comparable(scope: Scope, new: Memory) -> QuerySet[Memory]:
    """Active memories of the same owner, except historical ones such as episodes."""
    rows = Memory.objects.filter(instance=scope.instance, owner=new.owner, status=Status.ACTIVE)
    return unexpired(rows).exclude(role=Role.HISTORICAL)


def _nearest(scope: Scope, new: Memory, vector: Vector | None) -> list[Near]:
    if not vector or scope.instance.embedding_model != vector.model:
        return _nearest_by_words(scope, new)
    cosines = _cosines(scope, new.owner, vector.values)
    rows = {memory.id: memory for memory in _comparable(scope, new).filter(id__in=cosines)} if cosines else {}
    return [Near(rows[id], cosine) for id, cosine in cosines.items() if id in rows]


def _nearest_by_words(scope: Scope, new: Memory) -> list[Near]:
    words = " ".join(word for word in new.content.split() if word[:1].isalnum())
    filters = Filters(owner=new.owner) if new.owner else Filters()
    hits = search(scope, words, filters, mode="keyword", limit=LOOKED_AT).hits
    alike = [hit.memory.id for hit in hits if overlap(hit.memory.content, new.content) >= ALIKE]
    rows = {memory.id: memory for memory in _comparable(scope, new).filter(id__in=alike)} if alike else {}
    return [Near(rows[id], None) for id in alike if id in rows]


OF_OWNER = """
SELECT m.id, 1 - min(e.vector <=> (SELECT %(vector)s::halfvec(1536))) AS cosine
FROM memories_memory m
JOIN memories_chunk c ON c.instance_id = %(instance)s AND c.memory_id = m.id AND c.live
JOIN memories_embedding e ON e.instance_id = %(instance)s AND e.chunk_id = c.id AND e.generation = %(generation)s
WHERE m.instance_id = %(instance)s AND m.owner = %(owner)s AND NOT m.owner = '' AND m.status = 'active'
GROUP BY m.id
"""
OF_NOBODY = f"""
WITH wanted AS MATERIALIZED (
    SELECT %(vector)s::halfvec(1536) AS vector, memories_sketch(%(vector)s::halfvec(1536))::bit(1536) AS bits
),
rough AS MATERIALIZED (
    SELECT e.chunk_id FROM memories_embedding e
    WHERE e.instance_id = %(instance)s AND e.generation = %(generation)s AND e.live
    ORDER BY e.bits <~> (SELECT bits FROM wanted) LIMIT {NEIGHBOURHOOD}
)
SELECT m.id, 1 - min(e.vector <=> (SELECT vector FROM wanted)) AS cosine
FROM rough r
JOIN memories_embedding e ON e.instance_id = %(instance)s AND e.chunk_id = r.chunk_id AND e.generation = %(generation)s
JOIN memories_memory m ON m.instance_id = %(instance)s AND m.id = e.memory_id AND m.owner = '' AND m.status = 'active'
GROUP BY m.id
"""
BEST = "SELECT id, cosine FROM ({}) AS near WHERE cosine > %(threshold)s ORDER BY cosine DESC, id LIMIT {}"


def _cosines(scope: Scope, owner: str, vector: Sequence[float]) -> Mapping[UUID, float]:
    parameters: dict[str, Any] = {
        "instance": scope.instance.id,
        "generation": scope.instance.embedding_generation,
        "owner": owner,
        "vector": HalfVector.of(vector),
        "threshold": scope.instance.dedupe_threshold,
    }
    with connection.cursor() as cursor:
        cursor.execute(_statement(owner), parameters)
        return dict(cursor.fetchall())


def _statement(owner: str) -> str:
    return BEST.format(OF_OWNER if owner else OF_NOBODY, LOOKED_AT)
