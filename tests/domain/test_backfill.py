"""Making vectors: once for each text, in any number of goes, by several at once, and under another model."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import OperationalError, connection, connections
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.jobs import Job as QueuedJob

from accounts.access import Actor, Scope
from instances.models import Instance
from instances.store import InstanceChanges, change_instance
from memories import backfill, embedding, jobs
from memories.asking import Unavailable
from memories.backfill import (
    ask_for_embedding,
    embed_pending,
    find_job,
    generation_for,
    missing,
    run_embedding,
    try_failed_again,
)
from memories.deletion import delete_memory
from memories.draft import MemoryChanges
from memories.filters import Filters
from memories.models import Chunk, Embedding, Job, Memory
from memories.offline_embedder import MODEL as OFFLINE
from memories.search import Results, search
from memories.store import change
from memoryconsole.errors import NotAllowed, NotFound
from tests.factories import make_instance, make_memories, make_memory, scope_of
from tests.openai_server import OpenAIServer

pytestmark = pytest.mark.django_db
SMALL, LARGE = "text-embedding-3-small", "text-embedding-3-large"


@pytest.fixture
def bot() -> Instance:
    return make_instance("support-bot")


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "BATCH", 4)


def fresh(instance: Instance) -> Scope:
    """As the worker opens it: read again."""
    return scope_of(instance)


def states(instance: Instance) -> dict[str, int]:
    rows = Memory.objects.filter(instance=instance).values_list("embedding", flat=True)
    return {state: list(rows).count(state) for state in set(rows)}


def vectors(instance: Instance) -> int:
    return Embedding.objects.filter(instance=instance).count()


def find(instance: Instance, text: str) -> Results:
    return search(fresh(instance), text, Filters())


def in_another_connection(work: Any, *arguments: Any) -> Any:
    try:
        return work(*arguments)
    finally:
        connections.close_all()


# Making what is missing


def test_what_is_pending_becomes_ready(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 3)
    assert (states(bot), missing(fresh(bot))) == ({"pending": 3}, 3)
    assert embed_pending(fresh(bot)) == 3
    assert (states(bot), missing(fresh(bot)), vectors(bot)) == ({"ready": 3}, 0, 3)
    bot.refresh_from_db()
    assert bot.embedding_model == SMALL
    assert embed_pending(fresh(bot)) == 0
    assert len(openai.requests) == 1, "three texts in one request, and none for nothing"


def test_without_a_model_nothing_happens(bot: Instance) -> None:
    make_memories(bot, 2)
    assert (embed_pending(fresh(bot)), missing(fresh(bot)), states(bot)) == (0, 2, {"pending": 2})


def test_the_speaker_is_embedded_once(bot: Instance, openai: OpenAIServer) -> None:
    make_memory(bot, "Carol: I like tea", owner="carol")
    make_memory(bot, "Likes coffee", owner="dave")
    embed_pending(fresh(bot))
    assert sorted(openai.embedded()) == ["Carol: I like tea", "dave: Likes coffee"]


def test_the_same_text_is_embedded_once(bot: Instance, openai: OpenAIServer) -> None:
    make_memory(bot, "Alice likes tea")
    make_memory(bot, "Alice likes tea", category="fact")
    embed_pending(fresh(bot))
    make_memory(bot, "Alice likes tea", tags=["drink"])
    embed_pending(fresh(bot))
    assert openai.embedded() == ["Alice likes tea"]
    assert (states(bot), vectors(bot)) == ({"ready": 3}, 3)


def test_the_same_text_in_another_instance_is_asked_for_again(bot: Instance, openai: OpenAIServer) -> None:
    other = make_instance("sales-bot")
    for instance in (bot, other):
        make_memory(instance, "Alice likes tea")
        embed_pending(fresh(instance))
    assert openai.embedded() == ["Alice likes tea"] * 2


@pytest.mark.usefixtures("small_batches")
def test_a_limit(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 10)
    assert embed_pending(fresh(bot), limit=6) == 6
    assert states(bot) == {"ready": 6, "pending": 4}
    assert embed_pending(fresh(bot), limit=4) == 4
    assert states(bot) == {"ready": 10}
    assert embed_pending(fresh(bot), limit=1) == 0


@pytest.mark.usefixtures("small_batches")
def test_a_long_memory_is_ready_when_all_of_it_is(bot: Instance, openai: OpenAIServer) -> None:
    memory = make_memory(bot, "\n\n".join(f"Chapter {n}. " + "Bears sleep. " * 100 for n in range(9)))
    chunks = Chunk.objects.filter(instance=bot, memory_id=memory.id).count()
    assert chunks > 5
    embed_pending(fresh(bot), limit=5)
    assert states(bot) == {"pending": 1}
    assert embed_pending(fresh(bot)) == chunks - 5
    assert states(bot) == {"ready": 1}


@pytest.mark.usefixtures("small_batches")
def test_it_goes_on_where_it_stopped(bot: Instance, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "ATTEMPTS", 1)
    make_memories(bot, 10)
    progress: list[int] = []
    openai.fail("server_error", after=2)
    with pytest.raises(Unavailable):
        embed_pending(fresh(bot), progress=progress.append)
    assert (progress, states(bot)) == ([4, 8], {"ready": 8, "pending": 2})
    openai.recover()
    assert embed_pending(fresh(bot)) == 2
    assert states(bot) == {"ready": 10}
    assert len(openai.embedded()) == 12, "nothing that was stored is asked for again"


def test_a_poisoned_answer_reaches_nothing(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 2)
    openai.fail("nan")
    with pytest.raises(Unavailable):
        embed_pending(fresh(bot))
    assert (vectors(bot), states(bot)) == (0, {"pending": 2})


def test_a_text_that_is_refused_does_not_hold_up_the_others(bot: Instance, openai: OpenAIServer) -> None:
    openai.refuse("unspeakable")
    make_memories(bot, 3)
    make_memory(bot, "Something unspeakable")
    embed_pending(fresh(bot))
    assert states(bot) == {"ready": 3, "failed": 1}
    assert "refused" in Memory.objects.get(embedding="failed").embedding_error
    asked = len(openai.requests)
    make_memory(bot, "Alice likes tea")
    embed_pending(fresh(bot))
    assert (states(bot), len(openai.requests)) == ({"ready": 4, "failed": 1}, asked + 1)
    try_failed_again(fresh(bot))
    embed_pending(fresh(bot))
    assert states(bot) == {"ready": 4, "failed": 1}, "also when it is the only one"
    openai.recover()
    ask_for_embedding(fresh(bot))
    embed_pending(fresh(bot))
    assert states(bot) == {"ready": 5}
    assert not Memory.objects.exclude(embedding_error="").exists()


def test_when_everything_is_refused_no_text_is_to_blame(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 2)
    openai.fail("not_found")
    with pytest.raises(Unavailable, match="does not know"):
        embed_pending(fresh(bot))
    assert states(bot) == {"pending": 2}


@pytest.mark.django_db(transaction=True)
def test_a_chunk_may_go_while_its_text_is_away(bot: Instance, openai: OpenAIServer) -> None:
    kept, deleted, changed = make_memories(bot, 3)

    def others_write() -> None:
        delete_memory(scope_of(bot), deleted.id)
        change(scope_of(bot), changed.id, MemoryChanges(content="Something else now"))

    openai.meanwhile(lambda: in_another_connection(others_write))
    embed_pending(fresh(bot))
    live = Embedding.objects.filter(instance=bot, live=True).values_list("memory_id", flat=True)
    assert set(live) == {kept.id, changed.id}
    assert states(bot) == {"ready": 2}
    old = Chunk.objects.get(memory_id=changed.id, live=False)
    assert [vector.live for vector in Embedding.objects.filter(chunk_id=old.id)] == [False]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("small_batches")
def test_several_at_once_do_no_harm(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 30)
    openai.latency = 0.02

    def work(_: int) -> int:
        return int(in_another_connection(embed_pending, fresh(bot)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert (states(bot), vectors(bot)) == ({"ready": 30}, 30)


# Another model


def use_api(instance: Instance) -> None:
    change_instance(fresh(instance), InstanceChanges(embedder="openai"))


@pytest.fixture
def hashed(openai: OpenAIServer) -> Instance:
    """An instance with offline vectors, on a server with a key."""
    bot = make_instance("offline-bot", embedder="offline")
    make_memory(bot, "The dog sleeps in the hall")
    make_memories(bot, 9)
    embed_pending(fresh(bot))
    return bot


@pytest.mark.usefixtures("small_batches")
def test_search_goes_on_with_the_old_vectors_until_the_new_ones_are_there(
    hashed: Instance, openai: OpenAIServer
) -> None:
    use_api(hashed)
    assert ProcrastinateJob.objects.filter(task_name="embed_memories", status="todo").count() == 1
    assert missing(fresh(hashed)) == 10
    embed_pending(fresh(hashed), limit=8)
    hashed.refresh_from_db()
    assert (hashed.embedding_model, vectors(hashed)) == (OFFLINE, 18)
    results = find(hashed, "dogs sleeping")
    assert (results.mode, results.reason) == ("hybrid", "")
    assert results.hits[0].memory.content == "The dog sleeps in the hall"
    assert states(hashed) == {"ready": 10}

    assert embed_pending(fresh(hashed)) == 2
    hashed.refresh_from_db()
    assert (hashed.embedding_model, vectors(hashed), missing(fresh(hashed))) == (SMALL, 10, 0)
    assert find(hashed, "puppy").hits[0].memory.content == "The dog sleeps in the hall"
    assert states(hashed) == {"ready": 10}


def test_a_limit_that_is_just_enough_switches(hashed: Instance) -> None:
    use_api(hashed)
    assert embed_pending(fresh(hashed), limit=10) == 10
    hashed.refresh_from_db()
    assert (hashed.embedding_model, vectors(hashed)) == (SMALL, 10)


@pytest.mark.usefixtures("small_batches")
def test_what_is_written_during_the_change_gets_its_vector_too(hashed: Instance) -> None:
    use_api(hashed)
    written: list[Memory] = []

    def write(done: int) -> None:
        if done == 4:
            written.append(make_memory(hashed, "The invoice is overdue"))

    embed_pending(fresh(hashed), progress=write)
    embed_pending(fresh(hashed))
    assert (states(hashed), vectors(hashed)) == ({"ready": 11}, 11)
    assert find(hashed, "payment").hits[0].memory.id == written[0].id


@pytest.mark.usefixtures("small_batches")
def test_a_change_of_mind_never_mixes_models(hashed: Instance, openai: OpenAIServer, settings: Any) -> None:
    use_api(hashed)
    embed_pending(fresh(hashed), limit=4)
    settings.EMBEDDING_MODEL = LARGE
    embed_pending(fresh(hashed))
    hashed.refresh_from_db()
    assert (hashed.embedding_model, vectors(hashed)) == (LARGE, 10)
    asked = {text for request in openai.requests if request.body["model"] == LARGE for text in request.texts}
    assert len(asked) == 10, "all of them by the new model"


@pytest.mark.usefixtures("small_batches")
def test_back_to_the_model_before(hashed: Instance) -> None:
    use_api(hashed)
    embed_pending(fresh(hashed), limit=4)
    change_instance(fresh(hashed), InstanceChanges(embedder="offline"))
    assert (embed_pending(fresh(hashed)), missing(fresh(hashed))) == (0, 0)
    hashed.refresh_from_db()
    assert hashed.embedding_model == OFFLINE
    assert find(hashed, "dogs").mode == "hybrid"


def test_the_old_model_is_asked_as_long_as_its_vectors_are_searched(
    bot: Instance, openai: OpenAIServer, settings: Any
) -> None:
    make_memory(bot, "The dog sleeps in the hall")
    embed_pending(fresh(bot))
    settings.EMBEDDING_MODEL = LARGE
    results = find(bot, "puppy")
    assert (results.mode, openai.requests[-1].body["model"]) == ("hybrid", SMALL)
    change_instance(fresh(bot), InstanceChanges(embedder="offline"))
    assert find(bot, "kitten").mode == "hybrid"
    assert openai.requests[-1].body["model"] == SMALL
    settings.OPENAI_API_KEY = ""
    results = find(bot, "the hound and the hall")
    assert (results.mode, len(results.hits)) == ("keyword", 1)
    assert results.reason.startswith("No OpenAI or Azure key reaches this instance.")


def test_vectors_of_a_provider_that_is_gone(bot: Instance, openai: OpenAIServer) -> None:
    make_memory(bot, "The dog sleeps in the hall")
    Instance.objects.filter(pk=bot.pk).update(embedding_model="azure:our-embeddings")
    results = find(bot, "dog")
    assert (results.mode, len(results.hits)) == ("keyword", 1)
    assert "made anew with another model" in results.reason


def test_each_model_has_a_generation_of_its_own() -> None:
    bot = Instance(embedding_model=OFFLINE, embedding_generation=1)
    numbers = {model: generation_for(bot, model) for model in (OFFLINE, SMALL, LARGE, "azure:ours")}
    assert numbers[OFFLINE] == 1
    assert len(set(numbers.values())) == 4
    assert all(0 < number < 2**15 for number in numbers.values())
    bot = Instance(embedding_model="other", embedding_generation=numbers[SMALL])
    assert generation_for(bot, SMALL) != numbers[SMALL]


# Jobs somebody watches


def work_off(job: Job, **arguments: Any) -> Job:
    run_embedding(fresh(job.instance), str(job.id), **arguments)
    job.refresh_from_db()
    return job


def test_a_job_from_queued_to_done(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 3)
    job = ask_for_embedding(fresh(bot))
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
    job = ask_for_embedding(fresh(bot), limit=2)
    assert (job.total, job.payload) == (2, {"limit": 2})
    job = work_off(job, limit=2)
    assert (job.state, job.done, job.total, states(bot)) == ("done", 2, 2, {"ready": 2, "pending": 3})


@pytest.mark.usefixtures("small_batches")
def test_a_job_that_is_interrupted_keeps_its_progress(
    bot: Instance, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "ATTEMPTS", 1)
    make_memories(bot, 12)
    job = ask_for_embedding(fresh(bot), limit=10)
    openai.fail("server_error", after=2)
    with pytest.raises(Unavailable):
        work_off(job, limit=10)
    job.refresh_from_db()
    assert (job.state, job.done, job.total) == ("queued", 8, 10)
    assert job.error == "The embeddings API failed with status 500."
    openai.recover()
    job = work_off(job, limit=10)
    assert (job.state, job.done, job.total, job.error) == ("done", 10, 10, "")
    assert states(bot) == {"ready": 10, "pending": 2}


def test_a_job_whose_work_others_have_done_is_done(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 3)
    job = ask_for_embedding(fresh(bot))
    embed_pending(fresh(bot))
    job = work_off(job)
    assert (job.state, job.done, job.total) == ("done", 3, 3)


def test_a_job_without_a_model_says_so(bot: Instance) -> None:
    make_memories(bot, 1)
    job = work_off(ask_for_embedding(fresh(bot)))
    assert (job.state, job.done) == ("failed", 0)
    assert job.error.startswith("No OpenAI or Azure key reaches this instance")


def test_the_worker_tries_again_soon_and_for_ever() -> None:
    def seconds(attempts: int, error: Exception) -> float | None:
        job = QueuedJob(id=1, queue="default", lock=None, queueing_lock=None, task_name="x", attempts=attempts)
        decision = jobs.Later().get_retry_decision(exception=error, job=job)
        if decision is None or decision.retry_at is None:
            return None
        return round((decision.retry_at - timezone.now()).total_seconds())

    down = Unavailable("server_error", "down")
    assert [seconds(n, down) for n in (0, 1, 2, 5, 500)] == [10, 20, 40, 300, 300]
    assert seconds(0, Unavailable("rate_limited", "slow down", 60)) == 60
    assert seconds(0, OperationalError()) == 10
    assert seconds(0, ValueError()) is None


def test_jobs_belong_to_their_instance(bot: Instance) -> None:
    job = ask_for_embedding(fresh(bot))
    assert find_job(fresh(bot), str(job.id)) == job
    for scope, id in [(fresh(make_instance()), str(job.id)), (fresh(bot), "nonsense"), (fresh(bot), str(bot.id))]:
        with pytest.raises(NotFound):
            find_job(scope, id)


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
