"""Making the vectors of procedures. The job that embeds memories calls it, outside of any transaction."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.db import connection

from accounts.access import Scope
from instances.models import Instance
from memories.asking import Unavailable
from memories.embedding.answers import Vector
from memories.embedding.backfill import generation_for
from memories.embedding.embedder import embed_texts, model_of

Row = tuple[UUID, str, str]

MISSING = """
SELECT p.id, p.name, p.trigger FROM memories_procedure p
WHERE p.instance_id = %(instance)s AND NOT EXISTS (
    SELECT FROM memories_procedurevector v
    WHERE v.instance_id = %(instance)s AND v.procedure_id = p.id AND v.generation = %(generation)s
)
ORDER BY p.id
"""
# Only if name and trigger are still what was embedded. Changing a procedure deletes its vector in the same transaction.
STORE = """
INSERT INTO memories_procedurevector (instance_id, procedure_id, generation, vector)
SELECT %(instance)s, p.id, %(generation)s, new.vector::halfvec(1536)
FROM unnest(%(ids)s::uuid[], %(names)s::text[], %(triggers)s::text[], %(vectors)s::text[])
     AS new (id, name, trigger, vector)
JOIN memories_procedure p ON p.instance_id = %(instance)s AND p.id = new.id
     AND p.name = new.name AND p.trigger = new.trigger
ORDER BY p.id FOR SHARE OF p
ON CONFLICT DO NOTHING
"""
FORGET = """
DELETE FROM memories_procedurevector
WHERE instance_id = %(instance)s AND generation NOT IN (%(generation)s, %(current)s)
"""


def embed_procedures(scope: Scope) -> int:
    """Make the missing vectors of the instance's model; return how many. Raises `Unavailable`."""
    instance = scope.instance
    model = model_of(instance)
    if not model:
        return 0
    generation = generation_for(instance, model)
    parameters: dict[str, Any] = {"instance": instance.id, "generation": generation}
    with connection.cursor() as cursor:
        cursor.execute(MISSING, parameters)
        missing: list[Row] = cursor.fetchall()
    made = 0
    for rows, vectors in _embedded(instance, missing):
        _store(parameters, rows, vectors)
        made += len(rows)
    with connection.cursor() as cursor:
        cursor.execute(FORGET, {**parameters, "current": instance.embedding_generation})
    return made


def _embedded(instance: Instance, rows: Sequence[Row]) -> Iterator[tuple[Sequence[Row], list[Vector]]]:
    """Embed all rows at once, or one by one if one of them is refused, so that the others still get vectors."""
    if not rows:
        return
    try:
        yield rows, embed_texts(instance, [_text(row) for row in rows])
    except Unavailable as unavailable:
        if unavailable.code != "refused":
            raise
        if len(rows) > 1:
            for row in rows:
                yield from _embedded(instance, [row])


def _text(row: Row) -> str:
    _, name, trigger = row
    return f"{name}\n{trigger}" if trigger else name


def _store(parameters: dict[str, Any], rows: Sequence[Row], vectors: Sequence[Sequence[float]]) -> None:
    ids, names, triggers = ([row[column] for row in rows] for column in range(3))
    literals = ["[" + ",".join(f"{x:.6g}" for x in vector) + "]" for vector in vectors]
    with connection.cursor() as cursor:
        cursor.execute(STORE, {**parameters, "ids": ids, "names": names, "triggers": triggers, "vectors": literals})
