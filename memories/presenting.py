"""A memory as the API shows it. The shapes are also what the OpenAPI description is made from."""

from typing import Annotated, Any

from typing_extensions import TypedDict

from memories.models import Memory, MemoryVersion
from memories.vocabulary import Category, EmbeddingState, Role, Status, Visibility
from memoryconsole.presenting import Id, When, one_of, when


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
    tags: list[str]
    reason: str | None
    actor: str
    similarity: float | None
    writtenAt: When
    replacedAt: When


def memory_json(memory: Memory, instance: str) -> MemoryJson:
    """The instance's slug is passed in, because asking each row for it would be a query each."""
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


def version_json(version: MemoryVersion) -> VersionJson:
    return {
        "version": version.number,
        "key": version.key or None,
        "content": version.content,
        "summary": version.summary or None,
        "category": version.category,
        "role": version.role,
        "importance": version.importance,
        "tags": version.tags,
        "reason": version.reason or None,
        "actor": version.actor,
        "similarity": version.similarity,
        "writtenAt": when(version.written_at),
        "replacedAt": when(version.replaced_at),
    }
