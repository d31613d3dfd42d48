"""Make the vectors that are missing, in batches, outside any transaction.

The rows themselves say what is missing. So a crash loses nothing, because the next run finds the same rows, and running
twice does no harm. The vectors of one model are a generation. When an instance changes its model, the next generation
is filled while search goes on with the old one, and one statement at the end switches. What is saved or corrected
meanwhile also gets a vector of the old generation, by a job of its own that does not wait for the long one.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from uuid import UUID
from zlib import crc32

from django.db import connection, transaction
from django.db.models import F, Value
from django.db.models.functions import Greatest
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.exceptions import AlreadyEnqueued

from accounts.access import Scope
from instances.models import Instance
from memories.asking import PASSING, Unavailable
from memories.embedding.answers import Vector
from memories.embedding.backfill_sql import DELETE_OTHERS
from memories.embedding.batches import embed_batches
from memories.embedding.embedder import model_of
from memories.embedding.storing import (
    Missing,
    Piece,
    count_refused,
    mark_pending,
    mark_ready,
    parameters,
    store_by_memory,
)
from memories.filters import IS_NOT_EMBEDDED
from memories.models import Job, Memory
from memories.vocabulary import EmbeddingState
from memoryconsole.finding import find_among
from memoryconsole.queue import bring_forward, is_waiting

KIND = "embed-memories"
BATCH = 256
MOST = 2**31 - 1
NO_MODEL = "No OpenAI or Azure key reaches this instance, so there is nothing to make vectors with."
Progress = Callable[[int], None]

# A job that somebody asked for runs before automatic ones with the same lock, also before those that are postponed.
ASKED_FOR = 1


def embed_soon(scope: Scope) -> None:
    """Queue a job that embeds what is pending. Call it in the transaction that made the job necessary."""
    instance = scope.instance
    if model_of(instance):
        _queue_surely(instance, "embed_memories", lock=_lock(instance))
    if _is_changing(instance):
        _queue_surely(instance, "embed_fresh_memories", lock=f"embed fresh {instance.id}")


def _lock(instance: Instance) -> str:
    return f"embed {instance.id}"


def _queue_surely(instance: Instance, task: str, *, lock: str) -> None:
    if not _queue(instance, task, lock):
        # The job that is already queued may begin and end before this transaction commits: check again after it.
        transaction.on_commit(lambda: _queue(instance, task, lock), robust=True)


def _queue(instance: Instance, task: str, lock: str) -> bool:
    """Queue the job unless it is queued already."""
    if is_waiting(lock):
        return False
    try:
        with transaction.atomic():
            app.configure_task(task, queueing_lock=lock, lock=lock).defer(instance_id=str(instance.id))
    except AlreadyEnqueued:
        return False
    return True


def embed_anew(scope: Scope) -> None:
    """Embed everything with the model the instance wants now.

    If anything is missing, by a job that people can watch: it may take hours, and search changes when it is done.
    """
    if model_of(scope.instance) and missing(scope):
        ask_for_embedding(scope)
    else:
        embed_soon(scope)


def embed_what_is_left(scope: Scope) -> None:
    """Embed what is pending or failed before, when a worker starts and every night.

    If the server was started with another model, everything is embedded anew, unless that is already under way.
    """
    try_failed_again(scope)
    unfinished = Job.objects.filter(instance=scope.instance, kind=KIND, state__in=Job.UNFINISHED)
    if scope.instance.embedding_model != model_of(scope.instance) and not unfinished.exists():
        embed_anew(scope)
    else:
        embed_soon(scope)


def ask_for_embedding(scope: Scope, *, limit: int | None = None) -> Job:
    """Queue a job that people can watch. Failed texts and postponed jobs are tried again now too."""
    scope.require_write()
    lock = _lock(scope.instance)
    with transaction.atomic():
        try_failed_again(scope)
        job = Job.objects.create(
            instance=scope.instance,
            kind=KIND,
            actor=str(scope.actor),
            payload={"limit": limit} if limit else {},
            total=min(missing(scope), limit or MOST),
            created_at=timezone.now(),
        )
        bring_forward(lock)
        task = app.configure_task("embed_memories", lock=lock, priority=ASKED_FOR)
        task.defer(instance_id=str(scope.instance.id), job_id=str(job.id), limit=limit)
    return job


def try_failed_again(scope: Scope) -> None:
    """Mark as pending again what the embedder refused and what has lost a vector."""
    mark_pending(scope.instance, scope.instance.embedding_generation)
    rows = Memory.objects.filter(instance=scope.instance, embedding=EmbeddingState.FAILED)
    rows.filter(IS_NOT_EMBEDDED).update(embedding=EmbeddingState.PENDING)


def run_embedding(scope: Scope, job_id: str = "", limit: int | None = None) -> None:
    """`embed_pending` for the worker. The reason of a failure is written to the row of every queued job."""
    try:
        if job_id:
            _run_watched(scope, UUID(job_id), limit)
        else:
            embed_pending(scope, limit=limit)
    except Unavailable as unavailable:
        waiting = Job.objects.filter(instance=scope.instance, kind=KIND, state=Job.State.QUEUED)
        waiting.update(error=unavailable.reason)
        raise


def _run_watched(scope: Scope, job_id: UUID, limit: int | None) -> None:
    """Run a job that somebody watches, with its progress in its row."""
    rows = Job.objects.filter(instance=scope.instance, id=job_id)
    model = model_of(scope.instance)
    if not model:
        rows.update(state=Job.State.FAILED, error=NO_MODEL, finished_at=timezone.now())
        return
    job = rows.first()
    before = job.done if job else 0
    rows.update(state=Job.State.RUNNING, error="", attempts=F("attempts") + 1, started_at=timezone.now())

    def progress(done: int) -> None:
        rows.update(done=before + done, total=Greatest(F("total"), Value(before + done)))

    try:
        done = embed_pending(scope, limit=limit and max(limit - before, 0), progress=progress)
    except Unavailable:
        rows.update(state=Job.State.QUEUED)
        raise
    # Another job may have made some of the vectors: the total is reached all the same. But if the instance wants
    # another model by now, the rest is never made.
    made = Value(before + done)
    finished = Greatest(F("total"), made) if _wants(scope.instance, model) else made
    rows.update(state=Job.State.DONE, done=finished, total=finished, finished_at=timezone.now())


def find_job(scope: Scope, raw_id: object) -> Job:
    return find_among(Job.objects.filter(instance=scope.instance), raw_id, "There is no such job in this instance.")


def embed_pending(scope: Scope, *, limit: int | None = None, progress: Progress = lambda done: None) -> int:
    """Embed what is missing, up to `limit` chunks; returns how many got a vector.

    Raises `Unavailable` when the embedder does not answer. Vectors stored until then are kept.
    """
    instance = scope.instance
    model = model_of(instance)
    if not model:
        return 0
    begin_with(instance, model)
    generation = generation_for(instance, model)
    missing_chunks, done = Missing(instance, generation), 0
    batches = takewhile(lambda _: _wants(instance, model), _batches(missing_chunks, limit))
    for stored in embed_batches(instance, generation, batches):
        done += stored
        progress(done)
    if _wants(instance, model) and (done != limit or not missing_chunks.next(1)):
        _finish(scope, generation, model)
    return done


def _wants(instance: Instance, model: str) -> bool:
    """Whether the instance still wants this model. Whoever changes it queues the new work themselves.

    Read into an object of its own: `instance` must keep the model whose vectors are being made.
    """
    now = Instance.objects.filter(id=instance.id).first()
    return now is not None and model_of(now) == model


def _batches(missing_chunks: Missing, limit: int | None) -> Iterator[list[Piece]]:
    left = MOST if limit is None else limit
    while left and (batch := missing_chunks.next(min(BATCH, left))):
        left -= len(batch)
        yield batch


def embed_fresh(scope: Scope) -> int:
    """While all vectors are made anew: embed what is pending with the old model, which search still uses.

    If the old model cannot be asked any more, nothing is done: words find these memories, and later the new vectors do.
    """
    instance, generation = scope.instance, scope.instance.embedding_generation
    missing_chunks, done = Missing(instance, generation), 0
    in_use = Instance.objects.filter(id=instance.id, embedding_generation=generation)
    batches = takewhile(lambda _: _is_changing(instance) and in_use.exists(), _batches(missing_chunks, None))
    try:
        for stored in embed_batches(instance, generation, batches):
            done += stored
    except Unavailable as unavailable:
        if unavailable.code in PASSING:
            raise
    return done


def _is_changing(instance: Instance) -> bool:
    """Whether search still uses another model than the instance wants."""
    return bool(model_of(instance)) and instance.embedding_model not in ("", model_of(instance))


def store_vectors(scope: Scope, vectors: Mapping[UUID, Vector], model: str) -> None:
    """Store vectors of `model`, given by memory id, in the transaction that writes the memories.

    Each of these memories must be a single chunk.
    """
    instance = scope.instance
    begin_with(instance, model)
    if not vectors or instance.embedding_model != model:
        return
    store_by_memory(instance, instance.embedding_generation, vectors)


def generation_for(instance: Instance, model: str) -> int:
    """The generation to fill: the one in use, or that of another model that the instance wants now.

    Its number is computed from the model's name. So what an unfinished change left behind is used if its model is
    wanted again, and is never mistaken for vectors of a third model.
    """
    current = instance.embedding_generation
    if instance.embedding_model in ("", model):
        return current
    number = crc32(model.encode()) % 32_000 + 2
    return number if number != current else number + 1


def missing(scope: Scope) -> int:
    """How many chunks have no vector of the model the instance wants."""
    return Missing(scope.instance, _wanted(scope.instance)).count()


def refused(scope: Scope) -> int:
    """How many chunks have no such vector because the embedder refused their text."""
    return count_refused(scope.instance, _wanted(scope.instance))


def _wanted(instance: Instance) -> int:
    return generation_for(instance, model_of(instance) or instance.embedding_model)


def begin_with(instance: Instance, model: str) -> None:
    """Record the model of the instance's first vectors, which are then searched as they come."""
    if not instance.embedding_model:
        Instance.objects.filter(id=instance.id, embedding_model="").update(embedding_model=model)
        instance.refresh_from_db(fields=["embedding_model", "embedding_generation"])


def _finish(scope: Scope, generation: int, model: str) -> None:
    """Everything has a vector now: search with this generation, and delete the others.

    Memories are written before vectors, as in every change of a memory, so that the two cannot deadlock.
    """
    instance = scope.instance
    with transaction.atomic(), connection.cursor() as cursor:
        is_switched = generation != instance.embedding_generation and _switch(instance, generation, model)
        if is_switched and mark_pending(instance, generation):
            embed_soon(scope)
        mark_ready(instance, generation, None)
        if is_switched:
            cursor.execute(DELETE_OTHERS, parameters(instance, generation))


def _switch(instance: Instance, generation: int, model: str) -> bool:
    rows = Instance.objects.filter(id=instance.id, embedding_generation=instance.embedding_generation)
    is_switched = bool(rows.update(embedding_generation=generation, embedding_model=model))
    instance.refresh_from_db(fields=["embedding_model", "embedding_generation"])
    return is_switched
