"""Making vectors anew under another model, while search goes on with the old ones."""

from typing import Any

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob

from instances.models import Instance
from instances.store import InstanceChanges, change_instance
from memories import jobs
from memories.embedding.backfill import embed_pending, generation_for, missing, run_embedding
from memories.embedding.offline import MODEL as OFFLINE
from memories.models import Job, Memory
from tests.domain.looking import find, states, vectors
from tests.factories import make_instance, make_memories, make_memory, scope_of
from tests.openai_server import OpenAIServer

pytestmark = pytest.mark.django_db
SMALL, LARGE = "text-embedding-3-small", "text-embedding-3-large"


def use_api(instance: Instance) -> None:
    change_instance(scope_of(instance), InstanceChanges(embedder="openai"))


@pytest.fixture
def hashed(openai: OpenAIServer) -> Instance:
    """An instance with offline vectors, on a server with a key."""
    bot = make_instance("offline-bot", embedder="offline")
    make_memory(bot, "The dog sleeps in the hall")
    make_memories(bot, 9)
    embed_pending(scope_of(bot))
    return bot


@pytest.mark.usefixtures("small_batches")
def test_search_goes_on_with_the_old_vectors_until_the_new_ones_are_there(
    hashed: Instance, openai: OpenAIServer
) -> None:
    use_api(hashed)
    job = Job.objects.get()
    assert (job.kind, job.state, job.total) == ("embed-memories", "queued", 10), "somebody may watch it"
    assert ProcrastinateJob.objects.filter(task_name="embed_memories", args__job_id=str(job.id)).exists()
    assert missing(scope_of(hashed)) == 10
    embed_pending(scope_of(hashed), limit=8)
    hashed.refresh_from_db()
    assert (hashed.embedding_model, vectors(hashed)) == (OFFLINE, 18)
    results = find(hashed, "dogs sleeping")
    assert (results.mode, results.reason) == ("hybrid", "")
    assert results.hits[0].memory.content == "The dog sleeps in the hall"
    assert states(hashed) == {"ready": 10}

    assert embed_pending(scope_of(hashed)) == 2
    hashed.refresh_from_db()
    assert (hashed.embedding_model, vectors(hashed), missing(scope_of(hashed))) == (SMALL, 10, 0)
    assert find(hashed, "puppy").hits[0].memory.content == "The dog sleeps in the hall"
    assert states(hashed) == {"ready": 10}


def test_a_server_started_with_another_model_has_a_job_to_watch(hashed: Instance, settings: Any) -> None:
    use_api(hashed)
    embed_pending(scope_of(hashed))
    Job.objects.all().delete()
    jobs.embed_all_memories(0)
    assert not Job.objects.exists(), "nothing is to be done"
    settings.EMBEDDING_MODEL = LARGE
    jobs.embed_all_memories(0)
    jobs.embed_all_memories(0)
    job = Job.objects.get()
    assert (job.kind, job.state, job.total, job.actor) == ("embed-memories", "queued", 10, "job embed")
    jobs.embed_memories(instance_id=str(hashed.id), job_id=str(job.id))
    job.refresh_from_db()
    hashed.refresh_from_db()
    assert (job.state, job.done, hashed.embedding_model) == ("done", 10, LARGE)


def test_a_limit_that_is_just_enough_switches(hashed: Instance) -> None:
    use_api(hashed)
    assert embed_pending(scope_of(hashed), limit=10) == 10
    hashed.refresh_from_db()
    assert (hashed.embedding_model, vectors(hashed)) == (SMALL, 10)


@pytest.mark.usefixtures("small_batches")
def test_what_is_written_during_the_change_gets_its_vector_too(hashed: Instance) -> None:
    use_api(hashed)
    written: list[Memory] = []

    def write(done: int) -> None:
        if done == 4:
            written.append(make_memory(hashed, "The invoice is overdue"))

    embed_pending(scope_of(hashed), progress=write)
    embed_pending(scope_of(hashed))
    assert (states(hashed), vectors(hashed)) == ({"ready": 11}, 11)
    assert find(hashed, "payment").hits[0].memory.id == written[0].id


@pytest.mark.usefixtures("small_batches")
def test_a_change_of_mind_never_mixes_models(hashed: Instance, openai: OpenAIServer, settings: Any) -> None:
    use_api(hashed)
    embed_pending(scope_of(hashed), limit=4)
    settings.EMBEDDING_MODEL = LARGE
    embed_pending(scope_of(hashed))
    hashed.refresh_from_db()
    assert (hashed.embedding_model, vectors(hashed)) == (LARGE, 10)
    asked = {text for request in openai.requests if request.body["model"] == LARGE for text in request.texts}
    assert len(asked) == 10, "all of them by the new model"


@pytest.mark.usefixtures("small_batches")
def test_back_to_the_model_before(hashed: Instance) -> None:
    use_api(hashed)
    embed_pending(scope_of(hashed), limit=4)
    change_instance(scope_of(hashed), InstanceChanges(embedder="offline"))
    assert (embed_pending(scope_of(hashed)), missing(scope_of(hashed))) == (0, 0)
    hashed.refresh_from_db()
    assert hashed.embedding_model == OFFLINE
    assert find(hashed, "dogs").mode == "hybrid"


@pytest.mark.usefixtures("small_batches")
def test_a_change_of_mind_stops_what_is_under_way(hashed: Instance, openai: OpenAIServer) -> None:
    use_api(hashed)

    def change_back(done: int) -> None:
        change_instance(scope_of(Instance.objects.get(id=hashed.id)), InstanceChanges(embedder="offline"))

    assert embed_pending(scope_of(hashed), progress=change_back) == 4
    assert sum(len(request.texts) for request in openai.requests) == 4, "nothing more was asked for"
    hashed.refresh_from_db()
    assert (hashed.embedding_model, states(hashed)) == (OFFLINE, {"ready": 10})
    assert find(hashed, "dogs").mode == "hybrid"


def test_a_job_that_was_stopped_says_what_it_has_done(hashed: Instance, openai: OpenAIServer) -> None:
    use_api(hashed)
    job = Job.objects.get()
    begun = scope_of(Instance.objects.get(id=hashed.id))
    change_instance(scope_of(hashed), InstanceChanges(embedder="offline"))
    run_embedding(begun, str(job.id))
    job.refresh_from_db()
    assert (job.state, job.done, job.total, openai.requests) == ("done", 0, 0, [])


def test_the_old_model_is_asked_as_long_as_its_vectors_are_searched(
    bot: Instance, openai: OpenAIServer, settings: Any
) -> None:
    make_memory(bot, "The dog sleeps in the hall")
    embed_pending(scope_of(bot))
    settings.EMBEDDING_MODEL = LARGE
    results = find(bot, "puppy")
    assert (results.mode, openai.requests[-1].body["model"]) == ("hybrid", SMALL)
    change_instance(scope_of(bot), InstanceChanges(embedder="offline"))
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
