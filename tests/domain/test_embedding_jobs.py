"""Making vectors as a job somebody watches."""

from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.jobs import Job as QueuedJob

from accounts.access import Actor, Scope
from instances.models import Instance
from memories import jobs
from memories.asking import Unavailable
from memories.embedding import embedder
from memories.embedding.backfill import ask_for_embedding, embed_pending, find_job, run_embedding
from memories.models import Job
from memoryconsole.errors import NotAllowed, NotFound
from tests.domain.looking import states
from tests.factories import make_instance, make_memories, scope_of
from tests.openai_server import OpenAIServer
from tests.working import finished, put_off, what_the_worker_takes

pytestmark = pytest.mark.django_db


def work_off(job: Job, **arguments: Any) -> Job:
    run_embedding(scope_of(job.instance), str(job.id), **arguments)
    job.refresh_from_db()
    return job


def test_a_job_from_queued_to_done(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 3)
    job = ask_for_embedding(scope_of(bot))
    assert (job.state, job.done, job.total, job.payload, job.kind) == ("queued", 0, 3, {}, "embed-memories")
    assert job.actor == "shell server"
    queued = ProcrastinateJob.objects.filter(task_name="embed_memories").latest("id")
    assert queued.args == {"instance_id": str(bot.id), "job_id": str(job.id), "limit": None}
    jobs.embed_memories(**queued.args)
    job.refresh_from_db()
    assert (job.state, job.done, job.total, job.error) == ("done", 3, 3, "")
    assert job.finished_at is not None


def test_a_job_with_a_limit(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 5)
    job = ask_for_embedding(scope_of(bot), limit=2)
    assert (job.total, job.payload) == (2, {"limit": 2})
    job = work_off(job, limit=2)
    assert (job.state, job.done, job.total, states(bot)) == ("done", 2, 2, {"ready": 2, "pending": 3})


@pytest.mark.usefixtures("small_batches")
def test_a_job_that_is_interrupted_keeps_its_progress(
    bot: Instance, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedder, "ATTEMPTS", 1)
    make_memories(bot, 14)
    job = ask_for_embedding(scope_of(bot), limit=12)
    openai.fail("server_error", after=2)
    with pytest.raises(Unavailable):
        work_off(job, limit=12)
    job.refresh_from_db()
    assert (job.state, job.done, job.total) == ("queued", 8, 12)
    assert job.error == "The embeddings API failed with status 500."
    openai.recover()
    job = work_off(job, limit=12)
    assert (job.state, job.done, job.total, job.error) == ("done", 12, 12, "")
    assert states(bot) == {"ready": 12, "pending": 2}


def test_a_job_whose_work_others_have_done_is_done(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 3)
    job = ask_for_embedding(scope_of(bot))
    embed_pending(scope_of(bot))
    job = work_off(job)
    assert (job.state, job.done, job.total) == ("done", 3, 3)


# Asked for now


def test_a_job_does_not_wait_for_one_that_is_put_off(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 3)
    put_off(1)
    assert what_the_worker_takes() is None
    job = ask_for_embedding(scope_of(bot), limit=2)
    assert what_the_worker_takes() == {"instance_id": str(bot.id), "job_id": str(job.id), "limit": 2}
    assert what_the_worker_takes() is None, "one at a time"


def test_asking_again_brings_forward_what_was_asked_for(bot: Instance, openai: OpenAIServer) -> None:
    other = make_instance()
    make_memories(bot, 1)
    make_memories(other, 1)
    first = ask_for_embedding(scope_of(bot))
    put_off(3)
    second = ask_for_embedding(scope_of(bot))
    for job_id in (str(first.id), str(second.id), None):
        taken = what_the_worker_takes()
        assert taken
        assert taken.get("job_id") == job_id
        finished(taken)
    assert what_the_worker_takes() is None, "nobody has asked for the other instance"


def test_a_job_says_what_it_waits_for(bot: Instance, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "ATTEMPTS", 1)
    theirs = ask_for_embedding(scope_of(make_instance()))
    make_memories(bot, 3)
    first, second = ask_for_embedding(scope_of(bot)), ask_for_embedding(scope_of(bot))
    openai.fail("server_error")
    for job_id in ("", str(first.id)):
        Job.objects.update(error="")
        with pytest.raises(Unavailable):
            run_embedding(scope_of(bot), job_id)
        for job in (first, second):
            job.refresh_from_db()
            assert (job.state, job.error) == ("queued", "The embeddings API failed with status 500.")
    theirs.refresh_from_db()
    assert (first.attempts, second.attempts, theirs.error) == (1, 0, "")
    openai.recover()
    for job in (first, second):
        assert (work_off(job).state, job.error) == ("done", "")


def test_a_job_without_a_model_says_so(bot: Instance) -> None:
    make_memories(bot, 1)
    job = work_off(ask_for_embedding(scope_of(bot)))
    assert (job.state, job.done) == ("failed", 0)
    assert job.error.startswith("No OpenAI or Azure key reaches this instance")


def test_the_worker_tries_again_soon_and_for_ever() -> None:
    def seconds(attempts: int, error: Exception) -> float | None:
        job = QueuedJob(id=1, queue="default", lock=None, queueing_lock=None, task_name="x", attempts=attempts)
        decision = jobs.RetryUntilAvailable().get_retry_decision(exception=error, job=job)
        if decision is None or decision.retry_at is None:
            return None
        return round((decision.retry_at - timezone.now()).total_seconds())

    down = Unavailable("server_error", "down")
    assert [seconds(n, down) for n in (0, 1, 2, 5, 500)] == [10, 20, 40, 300, 300]
    assert seconds(0, Unavailable("rate_limited", "slow down", 60)) == 60
    assert seconds(0, OperationalError()) == 10
    assert seconds(0, ValueError()) is None


def test_jobs_belong_to_their_instance(bot: Instance) -> None:
    job = ask_for_embedding(scope_of(bot))
    assert find_job(scope_of(bot), str(job.id)) == job
    for instance, id in [(make_instance(), str(job.id)), (bot, "nonsense"), (bot, str(bot.id))]:
        with pytest.raises(NotFound):
            find_job(scope_of(instance), id)


def test_who_may_only_read_asks_for_nothing(bot: Instance) -> None:
    with pytest.raises(NotAllowed):
        ask_for_embedding(Scope(bot, Actor(kind="key", name="reader", read_only=True)))


def test_every_night_whoever_has_a_model(settings: Any) -> None:
    first, second = make_instance(embedder="offline"), make_instance(embedder="offline")
    make_instance(embedder="openai")
    jobs.embed_all_memories(0)
    jobs.embed_all_memories(0)
    queued = ProcrastinateJob.objects.filter(task_name="embed_memories").values_list("args", flat=True)
    assert sorted(job["instance_id"] for job in queued) == sorted([str(first.id), str(second.id)])


def test_an_instance_that_is_gone_is_no_error(bot: Instance) -> None:
    jobs.embed_memories(instance_id=str(make_instance().id))
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM instances_instance WHERE id = %s", [bot.id])
    jobs.embed_memories(instance_id=str(bot.id))
    jobs.use_language_now(instance_id=str(bot.id))
