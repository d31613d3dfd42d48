"""Jobs that follow from a conversation: extraction, summaries, episodes. At most one job of each kind waits for a
conversation, and it includes all messages that are added until it begins.

A job is queued in the transaction that makes it necessary, which locks the conversation. A job that is just beginning
waits for that lock, so it either sees the new messages, or another job is queued for them.
"""

from collections.abc import Callable
from uuid import UUID

from django.db import OperationalError, transaction
from django.db.models import F, Q
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.exceptions import AlreadyEnqueued

from accounts.access import Actor, Scope
from conversations.models import Conversation
from memories.asking import Unavailable
from memories.learning.llm import Unreadable, can_ask
from memories.models import Job
from memoryconsole.errors import Conflict
from memoryconsole.queue import bring_forward, is_waiting

EXTRACT = "extract-memories"
SUMMARISE = "summarise-conversation"
TELL = "tell-episode"
# The worker's task for each kind (memories/jobs.py).
TASKS = {EXTRACT: "extract_memories", SUMMARISE: "summarise_conversation", TELL: "tell_episode"}

LEARNER = Actor(kind="job", name="learning", all_instances=True)
TAKEN_OVER = "The worker ended before this was done; a later run took over."


def may_learn(scope: Scope) -> bool:
    """Whether memory is enabled in this instance and it has a language model."""
    return scope.instance.memory_enabled and can_ask(scope.instance)


def queue(scope: Scope, kind: str, conversation_id: UUID) -> Job | None:
    """Queue a job for the worker, inside the caller's transaction; None if the same job is waiting already."""
    lock = _lock(kind, conversation_id)
    if is_waiting(lock):
        return None
    try:
        with transaction.atomic():
            job = Job.objects.create(
                instance=scope.instance,
                kind=kind,
                actor=str(scope.actor),
                conversation_id=conversation_id,
                created_at=timezone.now(),
            )
            task = app.configure_task(TASKS[kind], queueing_lock=lock, lock=lock)
            task.defer(instance_id=str(scope.instance.id), job_id=str(job.id))
    except AlreadyEnqueued:
        return None
    return job


def finish(scope: Scope, conversation: Conversation) -> Job | None:
    """Queue what is left to do when a conversation has ended: facts from the messages since the assistant's last one,
    and the episode, whose job is returned."""
    if conversation.extracted_through < conversation.message_count:
        queue(scope, EXTRACT, conversation.id)
    return queue(scope, TELL, conversation.id) if conversation.told_through < conversation.message_count else None


def try_again(scope: Scope, job: Job) -> Job | None:
    """Queue a failed job again, as a new one. If the same work is waiting already, start that now and return None."""
    scope.require_write()
    if job.kind not in TASKS or job.conversation_id is None or job.state != Job.State.FAILED:
        raise Conflict("Only work on a conversation that failed can be tried again.", code="not_failed")
    bring_forward(_lock(job.kind, job.conversation_id))
    return queue(scope, job.kind, job.conversation_id)


def _lock(kind: str, conversation_id: UUID) -> str:
    return f"{kind} {conversation_id}"


def run(scope: Scope, job_id: str, work: Callable[[Job], None]) -> None:
    """Do the work and write its state into the job's row. Raises if the worker should try again later."""
    rows = Job.objects.filter(instance=scope.instance, id=UUID(job_id))
    job = rows.first()
    if job is None:
        return
    _take_over(scope, job)
    rows.update(state=Job.State.RUNNING, error="", attempts=F("attempts") + 1, started_at=timezone.now())
    try:
        work(job)
    except Unavailable as unavailable:
        if unavailable.code not in ("no_key", "refused"):
            rows.update(state=Job.State.QUEUED, error=unavailable.reason)
            raise
        _fail(job, unavailable.reason)
    except Unreadable as unreadable:
        _fail(job, unreadable.message)
    except OperationalError:
        raise
    except Exception as error:
        _fail(job, f"Something unexpected went wrong ({type(error).__name__}); the log of the worker says more.")
        raise
    else:
        rows.update(state=Job.State.DONE, finished_at=timezone.now())


def note(job: Job, *names: str) -> None:
    """Write these fields into the job's row, if it has not been deleted with its conversation."""
    Job.objects.filter(pk=job.pk).update(**{name: getattr(job, name) for name in names})


def _take_over(scope: Scope, job: Job) -> None:
    """Only one job of a kind runs per conversation, so an older one that is unfinished has lost its worker: fail it."""
    rows = Job.objects.filter(instance=scope.instance, conversation_id=job.conversation_id, kind=job.kind)
    earlier = rows.filter(Q(state=Job.State.RUNNING) | Q(state=Job.State.QUEUED, id__lt=job.id)).exclude(id=job.id)
    earlier.update(state=Job.State.FAILED, error=TAKEN_OVER, finished_at=timezone.now())


def _fail(job: Job, reason: str) -> None:
    rows = Job.objects.filter(pk=job.pk)
    rows.update(state=Job.State.FAILED, error=reason, finished_at=timezone.now())
