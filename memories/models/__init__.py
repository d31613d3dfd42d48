"""The models of memories. Every row belongs to one instance; see `memoryconsole.tenancy`."""

from memories.models.audit import AuditEntry
from memories.models.chunks import DIMENSIONS, Chunk, Embedding, WordFrequency
from memories.models.counting import MemoryCount, Milestone
from memories.models.duplicates import DuplicatePair
from memories.models.jobs import Job
from memories.models.memory import (
    LISTED,
    MAX_CONTENT,
    MAX_SUMMARY,
    MAX_TAG,
    MAX_TAGS,
    SHARED,
    Attachment,
    Memory,
    MemoryVersion,
)
from memories.models.procedures import Procedure, ProcedureVector
from memories.models.recall import GoldenMark, GoldenQuery, Recall, RecallUse
from memories.models.words import Language, Words

__all__ = [
    "DIMENSIONS",
    "LISTED",
    "MAX_CONTENT",
    "MAX_SUMMARY",
    "MAX_TAG",
    "MAX_TAGS",
    "SHARED",
    "Attachment",
    "AuditEntry",
    "Chunk",
    "DuplicatePair",
    "Embedding",
    "GoldenMark",
    "GoldenQuery",
    "Job",
    "Language",
    "Memory",
    "MemoryCount",
    "MemoryVersion",
    "Milestone",
    "Procedure",
    "ProcedureVector",
    "Recall",
    "RecallUse",
    "WordFrequency",
    "Words",
]
