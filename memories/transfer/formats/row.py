"""The input for an imported memory: a draft's fields, and fields that only an exported memory has."""

import re
from base64 import b64decode
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from memories.draft import (
    MAX_NAME,
    CategoryWord,
    Confidence,
    Content,
    Evidence,
    Importance,
    MemoryDraft,
    Name,
    Reason,
    RoleWord,
    Summary,
    Tags,
)
from memories.models import DIMENSIONS
from memoryconsole.inputs import Fraction, Input, Moment, Number, Text, at_most

HASH = re.compile(r"[0-9a-fA-F]{64}")
Count = Annotated[Number, Field(ge=0, le=2**31 - 1)]


def _check_vectors(vectors: dict[str, str]) -> dict[str, str]:
    for text_hash, vector in vectors.items():
        if not HASH.fullmatch(text_hash) or len(b64decode(vector, validate=True)) != 2 * DIMENSIONS:
            raise ValueError(f"A vector has {DIMENSIONS} numbers of two bytes, and the hash of its text.")
    return vectors


class ImportedVersion(Input):
    """An earlier version of an imported memory."""

    version: Annotated[Number, Field(ge=1, le=2**31 - 1)]
    key: Annotated[Name, at_most(MAX_NAME)] = ""
    content: Content
    summary: Summary = ""
    category: CategoryWord
    role: RoleWord
    importance: Importance
    confidence: Confidence | None = None
    evidence: Evidence | None = None
    tags: Tags = []
    reason: Reason = ""
    actor: Name = ""
    similarity: Fraction | None = None
    source_message_id: UUID | None = None
    written_at: Moment
    replaced_at: Moment

    @model_validator(mode="before")
    @classmethod
    def _null_is_empty(cls, data: Any) -> Any:
        return {name: value for name, value in data.items() if value is not None} if isinstance(data, dict) else data


class Vectors(Input):
    """The vectors of a memory's chunks, by the hash of the embedded text."""

    model: Annotated[Text, StringConstraints(min_length=1, max_length=100)]
    by_text: Annotated[dict[str, str], Field(max_length=200), AfterValidator(_check_vectors)]


class ImportedMemory(MemoryDraft):
    """A row of a file. `instanceId` and `embedding` are accepted and ignored."""

    id: UUID | None = None
    # Unlike in a draft, it may be in the past: expired rows are counted in the report.
    expires_at: Moment | None = None
    status: Literal["active", "superseded"] = "active"
    superseded_by_id: UUID | None = None
    access_count: Count = 0
    last_accessed_at: Moment | None = None
    created_at: Moment | None = None
    updated_at: Moment | None = None
    versions: Annotated[list[ImportedVersion], Field(max_length=100_000)] = Field(default_factory=list)
    vectors: Vectors | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_ignored(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {name: value for name, value in data.items() if value is not None and name not in IGNORED}


IGNORED = frozenset({"instanceId", "embedding", "dedupe", "score", "snippet", "explain", "redacted"})
