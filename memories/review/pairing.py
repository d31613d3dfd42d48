"""Finding pairs of similar memories in an instance, which are duplicates or contradict each other.

A job goes through the memories in batches, in the order of their ids, and looks up the nearest few of each: first by
sketches (one bit per dimension), then by vectors. Its position is stored together with the pairs, so that it continues
there after a crash. A long memory is compared by its first chunk.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from procrastinate.contrib.django import app

from accounts.access import Scope
from instances.models import Instance
from memories.learning.differences import differences
from memories.models import LISTED, DuplicatePair, Job, Memory
from memories.search.vectors_sql import OWN, index_of, nearest
from memories.vocabulary import EmbeddingState
from memoryconsole.ids import parse_id

KIND = "find-duplicates"
BATCH = 50
# For each memory, this many neighbours are compared by vectors, and at most this many become pairs.
NEIGHBOURHOOD = 40
NEAREST = 5

PAIRS = """
WITH own AS MATERIALIZED (
    SELECT m.id, m.owner, m.visibility = 'private' AS private, e.vector, e.bits
    FROM memories_memory m
    JOIN memories_chunk c
      ON c.instance_id = %(instance)s AND c.memory_id = m.id AND c.version_id IS NULL AND c.position = 0
    JOIN memories_embedding e
      ON e.instance_id = %(instance)s AND e.chunk_id = c.id AND e.generation = %(generation)s::smallint
    WHERE m.instance_id = %(instance)s AND m.id = ANY(%(ids)s)
)
SELECT own.id, near.id, near.cosine
FROM own CROSS JOIN LATERAL (
    SELECT m.id, 1 - (e.vector <=> own.vector) AS cosine
    FROM ({near}) AS rough
    JOIN memories_embedding e
      ON e.instance_id = %(instance)s AND e.chunk_id = rough.id AND e.generation = %(generation)s::smallint
    JOIN memories_chunk c
      ON c.instance_id = %(instance)s AND c.id = rough.id AND c.version_id IS NULL AND c.position = 0
    JOIN memories_memory m ON m.instance_id = %(instance)s AND m.id = e.memory_id AND m.listed
    WHERE m.id <> own.id AND m.owner = own.owner AND (m.visibility = 'private') = own.private
    ORDER BY cosine DESC, m.id LIMIT {nearest}
) AS near
WHERE near.cosine >= %(threshold)s
"""

# Locks the memories, so that none of them is deleted before its pair is stored, in the order of their ids, as whoever
# deletes several does. The state is not updated on conflict: dismissed pairs stay dismissed.
STORE = """
WITH there AS MATERIALIZED (
    SELECT id FROM memories_memory
    WHERE instance_id = %(instance)s AND id = ANY(%(first)s::uuid[] || %(second)s::uuid[]) ORDER BY id FOR KEY SHARE
)
INSERT INTO memories_duplicatepair (instance_id, id, first_id, second_id, cosine, kind, state, found_at)
SELECT %(instance)s, gen_random_uuid(), pair.first, pair.second, pair.cosine, pair.kind, 'open', %(found_at)s
FROM unnest(%(first)s::uuid[], %(second)s::uuid[], %(cosine)s::float8[], %(kind)s::text[])
     AS pair (first, second, cosine, kind)
JOIN there a ON a.id = pair.first
JOIN there b ON b.id = pair.second
ORDER BY pair.first, pair.second
ON CONFLICT (instance_id, first_id, second_id)
DO UPDATE SET cosine = excluded.cosine, kind = excluded.kind, found_at = excluded.found_at
"""


def ask_for_pairs(scope: Scope, *, threshold: float | None = None) -> Job:
    """Queue a job, or return the one that is unfinished."""
    scope.require_write()
    with transaction.atomic():
        # Lock the instance, so that two requests at once do not queue two jobs.
        Instance.objects.select_for_update(no_key=True).filter(id=scope.instance.id).first()
        unfinished = Job.objects.filter(instance=scope.instance, kind=KIND, state__in=Job.UNFINISHED).first()
        if unfinished is not None:
            return unfinished
        job = Job.objects.create(
            instance=scope.instance,
            kind=KIND,
            actor=str(scope.actor),
            payload={"threshold": threshold if threshold is not None else scope.instance.dedupe_threshold},
            total=_comparable(scope).count(),
            created_at=timezone.now(),
        )
        task = app.configure_task("find_duplicates", lock=f"duplicates {scope.instance.id}")
        task.defer(instance_id=str(scope.instance.id), job_id=str(job.id))
    return job


def run_pairing(scope: Scope, job_id: str) -> None:
    """For the worker: run the job, from where it was interrupted."""
    job = Job.objects.filter(instance=scope.instance, id=UUID(job_id)).first()
    if job is None:
        return
    job.state, job.error = Job.State.RUNNING, ""
    job.attempts += 1
    job.started_at = job.started_at or timezone.now()
    job.save(update_fields=["state", "error", "attempts", "started_at"])
    while ids := _batch(scope, parse_id(job.payload.get("after"))):
        scope.instance.refresh_from_db(fields=["embedding_generation"])  # the model may change meanwhile
        pairs = _pairs(scope, ids, job.payload["threshold"])
        with transaction.atomic():
            _store(scope, pairs)
            job.payload["after"] = str(ids[-1])
            job.done += len(ids)
            job.total = max(job.total, job.done)
            job.save(update_fields=["payload", "done", "total"])
    _finish(scope, job)


def _finish(scope: Scope, job: Job) -> None:
    """Delete open pairs that this run has not found again, and finish the job."""
    began = job.started_at or job.created_at
    with transaction.atomic():
        rows = DuplicatePair.objects.filter(instance=scope.instance, state=DuplicatePair.State.OPEN)
        rows.filter(found_at__lt=began).delete()
        kinds = list(rows.values_list("kind", flat=True))
        job.result = {"duplicates": kinds.count("duplicate"), "conflicts": kinds.count("conflict")}
        job.state, job.finished_at = Job.State.DONE, timezone.now()
        job.save(update_fields=["result", "state", "finished_at"])


def _comparable(scope: Scope) -> QuerySet[Memory]:
    return Memory.objects.filter(LISTED, instance=scope.instance, embedding=EmbeddingState.READY)


def _batch(scope: Scope, after: UUID | None) -> list[UUID]:
    rows = _comparable(scope).filter(id__gt=after) if after else _comparable(scope)
    return list(rows.order_by("id").values_list("id", flat=True)[:BATCH])


def _pairs(scope: Scope, ids: Sequence[UUID], threshold: float) -> dict[tuple[UUID, UUID], float]:
    """Each pair once, the older memory first, with its cosine."""
    instance = scope.instance
    statement = PAIRS.format(near=nearest(index_of(instance), OWN, NEIGHBOURHOOD), nearest=NEAREST)
    parameters: dict[str, Any] = {
        "instance": instance.id,
        "generation": instance.embedding_generation,
        "ids": list(ids),
        "threshold": threshold,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return {(min(a, b), max(a, b)): cosine for a, b, cosine in cursor.fetchall()}


def _store(scope: Scope, pairs: dict[tuple[UUID, UUID], float]) -> None:
    if not pairs:
        return
    ids = {id for pair in pairs for id in pair}
    rows = Memory.objects.filter(instance=scope.instance, id__in=ids)
    texts = dict(rows.values_list("id", "content"))
    known = [pair for pair in pairs if pair[0] in texts and pair[1] in texts]
    parameters: dict[str, Any] = {
        "instance": scope.instance.id,
        "found_at": timezone.now(),
        "first": [first for first, _ in known],
        "second": [second for _, second in known],
        "cosine": [min(pairs[pair], 1.0) for pair in known],
        "kind": [kind_of(texts[first], texts[second]) for first, second in known],
    }
    with connection.cursor() as cursor:
        cursor.execute(STORE, parameters)


def kind_of(first: str, second: str) -> str:
    return str(DuplicatePair.Kind.CONFLICT if differences(first, second) else DuplicatePair.Kind.DUPLICATE)


def remember_both(scope: Scope, a: UUID, b: UUID) -> None:
    """Store the pair as dismissed, so that it is not shown again."""
    DuplicatePair.objects.update_or_create(
        instance=scope.instance,
        first_id=min(a, b),
        second_id=max(a, b),
        defaults={"state": DuplicatePair.State.DISMISSED},
        create_defaults={
            "state": DuplicatePair.State.DISMISSED,
            "kind": DuplicatePair.Kind.CONFLICT,
            "cosine": 1.0,
            "found_at": timezone.now(),
        },
    )
