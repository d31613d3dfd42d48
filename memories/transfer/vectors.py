"""Storing vectors from an imported file, if they were made by the model that the instance uses."""

import struct
from base64 import b64decode
from collections.abc import Sequence
from typing import Any

from django.db import connection

from accounts.access import Scope
from memories.embedding.backfill import begin_with
from memories.embedding.embedder import model_of
from memories.models import DIMENSIONS, Memory
from memories.transfer.formats.row import Vectors

NUMBERS = struct.Struct(f">{DIMENSIONS}e")

STORE = """
INSERT INTO memories_embedding (instance_id, chunk_id, generation, memory_id, live, vector)
SELECT %(instance)s, c.id, %(generation)s, c.memory_id, c.live, new.vector::halfvec(1536)
FROM unnest(%(memories)s::uuid[], %(hashes)s::text[], %(vectors)s::text[]) AS new (memory_id, text_hash, vector)
JOIN memories_chunk c ON c.instance_id = %(instance)s AND c.memory_id = new.memory_id AND c.version_id IS NULL
     AND c.text_hash = decode(new.text_hash, 'hex')
ON CONFLICT DO NOTHING
"""
READY = """
UPDATE memories_memory m SET embedding = 'ready'
WHERE m.instance_id = %(instance)s AND m.id = ANY(%(memories)s::uuid[]) AND (
    SELECT true FROM memories_chunk c
    WHERE c.instance_id = %(instance)s AND c.memory_id = m.id AND c.version_id IS NULL AND (
        SELECT true FROM memories_embedding e
        WHERE e.instance_id = %(instance)s AND e.chunk_id = c.id AND e.generation = %(generation)s
    ) IS NULL
    LIMIT 1
) IS NULL
"""


def store_vectors(scope: Scope, imported: Sequence[tuple[Memory, Vectors]]) -> None:
    instance = scope.instance
    model = model_of(instance)
    if not model or instance.embedding_model not in ("", model):
        return
    usable = [
        (memory, text_hash, literal)
        for memory, vectors in imported
        if vectors.model == model
        for text_hash, vector in vectors.by_text.items()
        if (literal := _vector_literal(vector))
    ]
    if not usable:
        return
    begin_with(instance, model)
    parameters: dict[str, Any] = {
        "instance": instance.id,
        "generation": instance.embedding_generation,
        "memories": [memory.id for memory, _, _ in usable],
        "hashes": [text_hash for _, text_hash, _ in usable],
        "vectors": [vector for _, _, vector in usable],
    }
    with connection.cursor() as cursor:
        cursor.execute(STORE, parameters)
        cursor.execute(READY, parameters)


def _vector_literal(vector: str) -> str:
    """The text that PostgreSQL reads as this vector. Empty if it is zero or not finite, and so has no direction."""
    numbers = NUMBERS.unpack(b64decode(vector))
    is_finite = all(abs(x) <= 65504 for x in numbers)
    return "[" + ",".join(f"{x:.6g}" for x in numbers) + "]" if is_finite and any(numbers) else ""
