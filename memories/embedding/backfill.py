"""Making the vectors that are missing, in batches, outside any transaction.

What is missing is written on the rows themselves, so a crash loses nothing: the next run finds the same rows. Running
twice does no harm. Vectors of one model are one generation; when an instance changes its model, the next generation is
filled while search goes on with the old one, and the switch is one statement at the end. What is saved or corrected
meanwhile gets a vector of the old one too, by a job of its own that does not wait for the long one.
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
from memories.embedding.backfill_sql import FORGET
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

# Before what waits with the same lock without being asked for, also if that is put off.
ASKED_FOR = 1


def embed_soon(scope: Scope) -> None:
    """Have the worker embed what is pending; queued in the transaction that made it necessary, once."""
    instance = scope.instance
    if model_of(instance):
        _queue_surely(instance, "embed_memories", lock=_lock(instance))
    if _is_changing(instance):
        _queue_surely(instance, "embed_fresh_memories", lock=f"embed fresh {instance.id}")


def _lock(instance: Instance) -> str:
    return f"embed {instance.id}"


def _queue_surely(instance: Instance, task: str, *, lock: str) -> None:
    if not _queue(instance, task, lock):
        # The job that is queued already may begin, and end, before this transaction does: look again afterwards.
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
    """With a job to watch where there is something to do: it may take hours, and search changes when it is done."""
    if model_of(scope.instance) and missing(scope):
        ask_for_embedding(scope)
    else:
        embed_soon(scope)


def embed_what_is_left(scope: Scope) -> None:
    """Of a model that the server was started with nobody has heard yet: embedded anew, unless that is under way."""
    try_failed_again(scope)
    unfinished = Job.objects.filter(instance=scope.instance, kind=KIND, state__in=Job.UNFINISHED)
    if scope.instance.embedding_model != model_of(scope.instance) and not unfinished.exists():
        embed_anew(scope)
    else:
        embed_soon(scope)


def ask_for_embedding(scope: Scope, *, limit: int | None = None) -> Job:
    """Somebody wants it now: a job they can watch. What waits for a better moment is tried now too."""
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
    """What the embedder once refused counts as pending again, and so does what has lost a vector."""
    mark_pending(scope.instance, scope.instance.embedding_generation)
    rows = Memory.objects.filter(instance=scope.instance, embedding=EmbeddingState.FAILED)
    rows.filter(IS_NOT_EMBEDDED).update(embedding=EmbeddingState.PENDING)


def run_embedding(scope: Scope, job_id: str = "", limit: int | None = None) -> None:
    """`embed_pending` for the worker. What stops it stands in the row of every job that waits, also behind this one."""
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
    """Writes into the row of a job that somebody watches how far it is."""
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
    # Somebody else may have made some of them in the meantime: what was asked for is done all the same. But when
    # another model is wanted by now, the rest is not made at all.
    made = Value(before + done)
    finished = Greatest(F("total"), made) if _wants(scope.instance, model) else made
    rows.update(state=Job.State.DONE, done=finished, total=finished, finished_at=timezone.now())


def find_job(scope: Scope, raw_id: object) -> Job:
    return find_among(Job.objects.filter(instance=scope.instance), raw_id, "There is no such job in this instance.")


def embed_pending(scope: Scope, *, limit: int | None = None, progress: Progress = lambda done: None) -> int:
    """Embed what is missing, up to `limit` chunks; how many got a vector.

    Raises `Unavailable` when the embedder does not answer: what was done until then stays.
    """
    instance = scope.instance
    model = model_of(instance)
    if not model:
        return 0
    begin_with(instance, model)
    generation = generation_for(instance, model)
    looking, done = Missing(instance, generation), 0
    batches = takewhile(lambda _: _wants(instance, model), _batches(looking, limit))
    for made in embed_batches(instance, generation, batches):
        done += made
        progress(done)
    if _wants(instance, model) and (done != limit or not looking.next(1)):
        _finish(scope, generation, model)
    return done


def _wants(instance: Instance, model: str) -> bool:
    """Whether it still does: somebody may change their mind meanwhile, and has then queued what is to be done instead.

    Read anew beside what is being worked with: vectors on their way are of the model that was wanted before.
    """
    now = Instance.objects.filter(id=instance.id).first()
    return now is not None and model_of(now) == model


def _batches(looking: Missing, limit: int | None) -> Iterator[list[Piece]]:
    left = MOST if limit is None else limit
    while left and (batch := looking.next(min(BATCH, left))):
        left -= len(batch)
        yield batch


def embed_fresh(scope: Scope) -> int:
    """While another model makes all vectors anew: embed what is pending by the one that is searched with.

    Nothing when nobody can be asked for that any more: words find it, and the new vectors will.
    """
    instance, generation = scope.instance, scope.instance.embedding_generation
    looking, done = Missing(instance, generation), 0
    in_use = Instance.objects.filter(id=instance.id, embedding_generation=generation)
    batches = takewhile(lambda _: _is_changing(instance) and in_use.exists(), _batches(looking, None))
    try:
        for made in embed_batches(instance, generation, batches):
            done += made
    except Unavailable as unavailable:
        if unavailable.code in PASSING:
            raise
    return done


def _is_changing(instance: Instance) -> bool:
    """Whether search still uses vectors of another model than the instance wants."""
    return bool(model_of(instance)) and instance.embedding_model not in ("", model_of(instance))


def store_vectors(scope: Scope, vectors: Mapping[UUID, Vector], model: str) -> None:
    """Vectors of `model` that are there before their memories, in the transaction that writes these, which are one
    chunk each."""
    instance = scope.instance
    begin_with(instance, model)
    if not vectors or instance.embedding_model != model:
        return
    store_by_memory(instance, instance.embedding_generation, vectors)


def generation_for(instance: Instance, model: str) -> int:
    """The generation to fill: the one in use, or the one of another model that the instance wants now.

    It follows from the model's name: what an unfinished change has left is used when its model is wanted again, and
    never taken for the vectors of a third one.
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
    """How many chunks have none because the embedder did not take them."""
    return count_refused(scope.instance, _wanted(scope.instance))


def _wanted(instance: Instance) -> int:
    return generation_for(instance, model_of(instance) or instance.embedding_model)


def begin_with(instance: Instance, model: str) -> None:
    """The first vectors of an instance say which model it uses, and are searched as they come."""
    if not instance.embedding_model:
        Instance.objects.filter(id=instance.id, embedding_model="").update(embedding_model=model)
        instance.refresh_from_db(fields=["embedding_model", "embedding_generation"])


def _finish(scope: Scope, generation: int, model: str) -> None:
    """Everything has a vector now: search with this generation, and forget the others.

    Memories first and vectors last, as whoever changes a memory does: they cannot wait for each other.
    """
    instance = scope.instance
    with transaction.atomic(), connection.cursor() as cursor:
        is_switched = generation != instance.embedding_generation and _switch(instance, generation, model)
        if is_switched and mark_pending(instance, generation):
            embed_soon(scope)
        mark_ready(instance, generation, None)
        if is_switched:
            cursor.execute(FORGET, parameters(instance, generation))


def _switch(instance: Instance, generation: int, model: str) -> bool:
    rows = Instance.objects.filter(id=instance.id, embedding_generation=instance.embedding_generation)
    is_switched = bool(rows.update(embedding_generation=generation, embedding_model=model))
    instance.refresh_from_db(fields=["embedding_model", "embedding_generation"])
    return is_switched
