"""The worker's tasks about memories, queued or periodic. Only tasks look at more than one instance."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from uuid import UUID

from django.db import DatabaseError, OperationalError, connection
from django.db.models import Sum
from procrastinate import BaseRetryStrategy, RetryDecision
from procrastinate.contrib.django import app
from procrastinate.jobs import Job as QueuedJob

from accounts.access import Actor, Scope
from instances.models import Instance
from memories.activity import fail_lost, forget_old
from memories.asking import Unavailable
from memories.attachments import remove_orphans
from memories.deletion import purge_expired
from memories.embedding.backfill import embed_fresh, embed_what_is_left, run_embedding
from memories.expiry import IS_EXPIRED
from memories.indexing import use_language
from memories.learning import follow_up
from memories.learning.episodes import run_episode, tell_quiet_ones
from memories.learning.extraction import run_extraction
from memories.learning.summaries import run_summary
from memories.milestones import MARKED, WORTH_MARKING, mark
from memories.models import Job, Memory, MemoryCount, Milestone, RecallUse, WordFrequency
from memories.procedures import store as procedures
from memories.procedures.vectors import embed_procedures
from memories.recall.log import fold_uses, purge_log
from memories.review.pairing import run_pairing
from memories.search.sizes import ALL_WORDS_UP_TO
from memories.search.vector_index import WORTH_INDEXING, build_index, drop_forgotten, give_up_index, is_due
from memories.search.word_frequencies import ALL, count_words, count_words_again, is_outdated
from memories.transfer import uploads

PURGER = Actor(kind="job", name="purge", all_instances=True)
INDEXER = Actor(kind="job", name="vector index", all_instances=True)
MARKER = Actor(kind="job", name="milestones", all_instances=True)
COUNTER = Actor(kind="job", name="words", all_instances=True)
KEEPER = Actor(kind="job", name="jobs", all_instances=True)
EMBEDDER = Actor(kind="job", name="embed", all_instances=True)
LONGEST_WAIT = 300

FOLD = """
WITH folded AS (
    DELETE FROM memories_memorycount RETURNING instance_id, category, private, delta
)
INSERT INTO memories_memorycount (instance_id, id, category, private, delta)
SELECT instance_id, gen_random_uuid(), category, private, sum(delta)
FROM folded
GROUP BY instance_id, category, private
HAVING sum(delta) <> 0
"""


def _scopes(actor: Actor, *instance_ids: UUID | str) -> Iterator[Scope]:
    """A scope for each of these instances, skipping those that have been deleted meanwhile."""
    for instance_id in instance_ids:
        if instance := Instance.objects.filter(id=instance_id).first():
            yield Scope(instance, actor)


class RetryUntilAvailable(BaseRetryStrategy):
    """Retry while an API or the database is unavailable: soon at first, then every five minutes, without a limit."""

    def get_retry_decision(self, *, exception: BaseException, job: QueuedJob) -> RetryDecision | None:
        if not isinstance(exception, Unavailable | OperationalError):
            return None
        seconds = 10 * 2 ** min(job.attempts, 5)
        asked_for = exception.retry_after if isinstance(exception, Unavailable) else None
        return RetryDecision(retry_in={"seconds": int(min(max(seconds, asked_for or 0), LONGEST_WAIT))})


@app.task(name="embed_memories", retry=RetryUntilAvailable())
def embed_memories(instance_id: str, job_id: str = "", limit: int | None = None) -> None:
    """Make the vectors an instance is missing."""
    for scope in _scopes(EMBEDDER, instance_id):
        run_embedding(scope, job_id, limit)
        embed_procedures(scope)


@app.task(name="embed_fresh_memories", retry=RetryUntilAvailable())
def embed_fresh_memories(instance_id: str) -> None:
    """While an instance changes its model: make vectors of the old model for new memories."""
    for scope in _scopes(EMBEDDER, instance_id):
        embed_fresh(scope)


@app.task(name="extract_memories", retry=RetryUntilAvailable())
def extract_memories(instance_id: str, job_id: str) -> None:
    """Learn what is new in a conversation."""
    _follow_up(instance_id, job_id, run_extraction)


@app.task(name="summarise_conversation", retry=RetryUntilAvailable())
def summarise_conversation(instance_id: str, job_id: str) -> None:
    _follow_up(instance_id, job_id, run_summary)


@app.task(name="tell_episode", retry=RetryUntilAvailable())
def tell_episode(instance_id: str, job_id: str) -> None:
    _follow_up(instance_id, job_id, run_episode)


def _follow_up(instance_id: str, job_id: str, work: Callable[[Scope, Job], None]) -> None:
    for scope in _scopes(follow_up.LEARNER, instance_id):
        follow_up.run(scope, job_id, partial(work, scope))


@app.periodic(cron="* * * * *")
@app.task(name="tell_episodes", queueing_lock="tell_episodes")
def tell_episodes(timestamp: int) -> None:
    """Queue an episode for each conversation that has gone quiet."""
    for instance in Instance.objects.filter(memory_enabled=True):
        tell_quiet_ones(Scope(instance, follow_up.LEARNER))


@app.periodic(cron="*/5 * * * *")
@app.task(name="fail_lost_jobs", queueing_lock="fail_lost_jobs")
def fail_lost_jobs(timestamp: int) -> None:
    """Mark jobs as failed whose worker is gone."""
    busy = Job.objects.filter(state__in=Job.UNFINISHED).values("instance_id").distinct()
    for instance in Instance.objects.filter(id__in=busy):
        fail_lost(Scope(instance, KEEPER))


@app.task(name="find_duplicates", retry=RetryUntilAvailable())
def find_duplicates(instance_id: str, job_id: str) -> None:
    """Find the memories that say nearly the same."""
    for scope in _scopes(KEEPER, instance_id):
        run_pairing(scope, job_id)


@app.periodic(cron="41 3 * * *")
@app.task(name="forget_old_jobs", queueing_lock="forget_old_jobs")
def forget_old_jobs(timestamp: int) -> None:
    for instance in Instance.objects.all():
        forget_old(Scope(instance, KEEPER))


@app.task(name="use_language", retry=RetryUntilAvailable())
def use_language_now(instance_id: str) -> None:
    """After an instance's language has changed: index its words again."""
    for scope in _scopes(EMBEDDER, instance_id):
        use_language(scope)
        procedures.use_language(scope)
        count_words_again(scope)


@app.periodic(cron="17 3 * * *")
@app.task(name="embed_all_memories", queueing_lock="embed_all_memories")
def embed_all_memories(timestamp: int) -> None:
    """Every night and when a worker starts: queue what has no vector, or none of the model that the instance wants."""
    for instance in Instance.objects.all():
        embed_what_is_left(Scope(instance, EMBEDDER))


@app.periodic(cron="* * * * *")
@app.task(name="fold_counts", queueing_lock="fold_counts")
def fold_counts(timestamp: int) -> None:
    """Sum up the appended changes, so that a count is the sum of a few rows."""
    with connection.cursor() as cursor:
        cursor.execute(FOLD)


@app.periodic(cron="*/5 * * * *")
@app.task(name="purge_expired", queueing_lock="purge_expired")
def purge_all_expired(timestamp: int) -> None:
    """Delete expired memories."""
    due = Memory.objects.filter(IS_EXPIRED).values("instance_id").distinct()
    for instance in Instance.objects.filter(id__in=due):
        purge_expired(Scope(instance, PURGER))


@app.periodic(cron="* * * * *")
@app.task(name="count_uses", queueing_lock="count_uses")
def count_uses(timestamp: int) -> None:
    """Add the appended uses of memories to their access counts."""
    for instance_id in RecallUse.objects.order_by().values_list("instance_id", flat=True).distinct():
        fold_uses(instance_id)


@app.periodic(cron="41 * * * *")
@app.task(name="purge_recalls", queueing_lock="purge_recalls")
def purge_recalls(timestamp: int) -> None:
    """Delete recalls that are older than their instance keeps them."""
    for instance in Instance.objects.all():
        purge_log(Scope(instance, PURGER))


@app.periodic(cron="*/5 * * * *")
@app.task(name="mark_milestones", queueing_lock="mark_milestones")
def mark_milestones(timestamp: int) -> None:
    """Make new milestones for long lists whose length has changed."""
    lengths = MemoryCount.objects.values_list("instance_id").annotate(n=Sum("delta")).filter(n__gte=WORTH_MARKING)
    marked = dict(Milestone.objects.filter(series=MARKED).values_list("instance_id", "ordinal"))
    changed = {instance_id: length for instance_id, length in lengths if marked.get(instance_id) != length}
    for scope in _scopes(MARKER, *changed):
        mark(scope, changed[scope.instance.id])


@app.periodic(cron="*/10 * * * *")
@app.task(name="count_common_words", queueing_lock="count_common_words")
def count_common_words(timestamp: int) -> None:
    """Count the common words of large instances that have changed since the last count."""
    lengths = MemoryCount.objects.values_list("instance_id").annotate(n=Sum("delta")).filter(n__gt=ALL_WORDS_UP_TO)
    counted = dict(WordFrequency.objects.filter(word=ALL).values_list("instance_id", "chunks"))
    changed = [instance_id for instance_id, length in lengths if is_outdated(counted.get(instance_id), length)]
    for scope in _scopes(COUNTER, *changed):
        count_words(scope)


@app.periodic(cron="*/10 * * * *")
@app.task(name="build_vector_indexes", queueing_lock="build_vector_indexes", lock="build_vector_indexes")
def build_vector_indexes(timestamp: int) -> None:
    """Build a vector index for every instance that has become large, and drop those of instances that shrank.

    If one index cannot be built, because the disk is full for example, the others are still built.
    """
    lengths = dict(MemoryCount.objects.values_list("instance_id").annotate(Sum("delta")))
    failure: DatabaseError | None = None
    for instance in Instance.objects.exclude(embedding_model=""):
        scope, length = Scope(instance, INDEXER), lengths.get(instance.id, 0)
        try:
            if length >= WORTH_INDEXING and is_due(scope):
                build_index(scope)
            elif length < WORTH_INDEXING // 2 and instance.indexed_generation:
                give_up_index(scope)
        except DatabaseError as error:
            failure = error
    drop_forgotten()
    if failure:
        raise failure


@app.task(name="import_memories", retry=RetryUntilAvailable())
def import_memories(instance_id: str, job_id: str, path: str, actor: dict[str, Any]) -> None:
    """Import a large file. After a crash it is started again and continues where it was."""
    instance = Instance.objects.filter(id=instance_id).first()
    job = Job.objects.filter(instance_id=instance_id, id=job_id).first()
    if instance is None or job is None:
        uploads.remove(path)
    else:
        uploads.run_import(Scope(instance, uploads.actor_from(actor)), job)


@app.periodic(cron="41 * * * *")
@app.task(name="remove_forgotten_uploads", queueing_lock="remove_forgotten_uploads")
def remove_forgotten_uploads(timestamp: int) -> None:
    """Delete files of imports that nobody has confirmed, and files of memories that are gone."""
    uploads.remove_forgotten()
    remove_orphans()
