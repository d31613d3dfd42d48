"""Memories as JSON. The OpenAPI schema is made from the same types."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired, cast

from typing_extensions import TypedDict

from instances.models import Instance
from memories.listing import Listing
from memories.models import Memory, MemoryVersion
from memories.role_hints import role_hint
from memories.search.hybrid import Found, Hit, Results
from memories.search.marking import snippets
from memories.store import Saved
from memories.vocabulary import Category, EmbeddingState, Role, Status, Visibility
from memoryconsole.presenting import Id, PageJson, When, one_of, when


class MemoryJson(TypedDict):
    id: Id
    instanceId: str
    key: str | None
    content: str
    summary: str | None
    category: Annotated[str, one_of(Category.values)]
    role: Annotated[str, one_of(Role.values)]
    importance: int
    confidence: float
    tags: list[str]
    pinned: bool
    visibility: Annotated[str, one_of(Visibility.values)]
    owner: str | None
    source: str
    sourceConversationId: Id | None
    sourceMessageIds: list[Id]
    occurredAt: When | None
    channel: str | None
    expiresAt: When | None
    evidence: dict[str, Any]
    status: Annotated[str, one_of(Status.values)]
    supersededById: Id | None
    supersedeReason: str | None
    embedding: Annotated[str, one_of(EmbeddingState.values)]
    accessCount: int
    lastAccessedAt: When | None
    createdAt: When
    updatedAt: When


class VersionJson(TypedDict):
    version: int
    key: str | None
    content: str
    summary: str | None
    category: Annotated[str, one_of(Category.values)]
    role: Annotated[str, one_of(Role.values)]
    importance: int
    confidence: float | None
    evidence: dict[str, Any] | None
    tags: list[str]
    reason: str | None
    actor: str
    similarity: float | None
    sourceMessageId: Id | None
    writtenAt: When
    replacedAt: When


def memory_json(memory: Memory, instance: str) -> MemoryJson:
    """`instance` is the slug; reading it from the memory would be a query for each."""
    return {
        "id": str(memory.id),
        "instanceId": instance,
        "key": memory.key or None,
        "content": memory.content,
        "summary": memory.summary or None,
        "category": memory.category,
        "role": memory.role,
        "importance": memory.importance,
        "confidence": memory.confidence,
        "tags": memory.tags,
        "pinned": memory.pinned,
        "visibility": memory.visibility,
        "owner": memory.owner or None,
        "source": memory.source,
        "sourceConversationId": str(memory.source_conversation_id) if memory.source_conversation_id else None,
        "sourceMessageIds": [str(id) for id in memory.source_message_ids],
        "occurredAt": when(memory.occurred_at) if memory.occurred_at else None,
        "channel": memory.channel or None,
        "expiresAt": when(memory.expires_at) if memory.expires_at else None,
        "evidence": memory.evidence,
        "status": memory.status,
        "supersededById": str(memory.superseded_by_id) if memory.superseded_by_id else None,
        "supersedeReason": memory.supersede_reason or None,
        "embedding": memory.embedding,
        "accessCount": memory.access_count,
        "lastAccessedAt": when(memory.last_accessed_at) if memory.last_accessed_at else None,
        "createdAt": when(memory.created_at),
        "updatedAt": when(memory.updated_at),
    }


class HintJson(TypedDict):
    """Another value that might fit better, and why. Nothing was changed."""

    field: str
    value: str
    reason: str


class SavedJson(TypedDict):
    memory: MemoryJson
    event: Literal["created", "updated"]
    redacted: NotRequired[list[str]]
    hints: NotRequired[list[HintJson]]


def saved_json(saved: Saved, instance: str) -> SavedJson:
    answer: SavedJson = {"memory": memory_json(saved.memory, instance), "event": saved.event}
    if saved.redacted:
        answer["redacted"] = list(saved.redacted)
    if hint := role_hint(saved.memory.content, saved.memory.role):
        answer["hints"] = [{"field": "role", "value": hint.role, "reason": hint.reason}]
    return answer


class ListJson(TypedDict):
    """The hit's rank in one of the lists; `rrf` is what it adds to the final score."""

    rank: int | None
    rrf: float


class VectorListJson(ListJson):
    similarity: float | None


class KeywordListJson(ListJson):
    score: float | None
    matched: list[str]


class ExplainJson(TypedDict):
    vector: VectorListJson
    keyword: KeywordListJson
    boosts: dict[str, float]
    final: float


class HitJson(MemoryJson):
    sharedFrom: NotRequired[str]
    score: NotRequired[float]
    snippet: NotRequired[str]
    explain: NotRequired[ExplainJson]


def hit_json(hit: Hit, instance: str, snippet: str, *, explain: bool) -> HitJson:
    """A hit on an earlier text shows that text, as superseded by the memory."""
    memory = memory_json(hit.memory, hit.origin.slug if hit.origin else instance)
    if hit.version:
        memory = _earlier(memory, hit.version)
    found = hit.found
    answer = cast(HitJson, memory)
    if hit.origin:
        answer["sharedFrom"] = hit.origin.slug
    answer["score"] = round(found.final, 6)
    answer["snippet"] = snippet
    if explain:
        answer["explain"] = explain_json(found, is_shared=hit.origin is not None)
    return answer


class MemoriesJson(PageJson):
    searchMode: str | None
    reason: NotRequired[str]
    corrected: NotRequired[dict[str, str]]
    memories: Sequence[MemoryJson | HitJson]


def listing_json(listing: Listing, instance: str, *, limit: int, offset: int) -> MemoriesJson:
    return {
        "total": listing.total,
        "limit": limit,
        "offset": offset,
        "nextCursor": listing.next_cursor,
        "searchMode": None,
        "memories": [memory_json(memory, instance) for memory in listing.memories],
    }


def found_json(results: Results, instance: Instance, *, limit: int, offset: int, explain: bool) -> MemoriesJson:
    hits = zip(results.hits, snippets(instance, results.hits), strict=True)
    answer: MemoriesJson = {
        "total": results.total,
        "limit": limit,
        "offset": offset,
        "nextCursor": None,
        "searchMode": results.mode,
        "memories": [hit_json(hit, instance.slug, snippet, explain=explain) for hit, snippet in hits],
    }
    if results.reason:
        answer["reason"] = results.reason
    if results.corrected:
        answer["corrected"] = dict(results.corrected)
    return answer


def explain_json(found: Found, *, is_shared: bool = False) -> ExplainJson:
    context = {"context": found.context_rrf} if found.context_rank else {}
    return {
        "vector": {"rank": found.vector_rank, "similarity": found.similarity, "rrf": found.vector_rrf},
        "keyword": {
            "rank": found.keyword_rank,
            "score": found.keyword_score,
            "matched": found.matched,
            "rrf": found.keyword_rrf,
        },
        "boosts": {"shared": found.final} if is_shared else context,
        "final": found.final,
    }


def _earlier(memory: MemoryJson, version: MemoryVersion) -> MemoryJson:
    return {
        **memory,
        "content": version.content,
        "summary": version.summary or None,
        "category": version.category,
        "role": version.role,
        "importance": version.importance,
        "confidence": memory["confidence"] if version.confidence is None else version.confidence,
        "evidence": memory["evidence"] if version.evidence is None else version.evidence,
        "tags": version.tags,
        "status": Status.SUPERSEDED,
        "supersededById": memory["id"],
        "supersedeReason": version.reason or None,
    }


def version_json(version: MemoryVersion) -> VersionJson:
    return {
        "version": version.number,
        "key": version.key or None,
        "content": version.content,
        "summary": version.summary or None,
        "category": version.category,
        "role": version.role,
        "importance": version.importance,
        "confidence": version.confidence,
        "evidence": version.evidence,
        "tags": version.tags,
        "reason": version.reason or None,
        "actor": version.actor,
        "similarity": version.similarity,
        "sourceMessageId": str(version.source_message_id) if version.source_message_id else None,
        "writtenAt": when(version.written_at),
        "replacedAt": when(version.replaced_at),
    }
