"""Memories saved or corrected while another model makes the vectors anew: found by meaning all the same."""

from typing import Any

import pytest
from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob

from instances.models import Instance
from instances.store import InstanceChanges, change_instance
from memories import jobs
from memories.asking import Unavailable
from memories.draft import MemoryChanges
from memories.embedding import embedder
from memories.embedding.backfill import embed_fresh, embed_pending
from memories.models import Chunk, Embedding, Memory
from memories.store import change
from tests.domain.looking import find, in_another_connection, states, texts, vectors
from tests.factories import make_memories, make_memory, scope_of
from tests.openai_server import OpenAIServer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("small_batches")]
SMALL, LARGE = "text-embedding-3-small", "text-embedding-3-large"
OLD = 1


@pytest.fixture
def changing(bot: Instance, openai: OpenAIServer, settings: Any) -> Instance:
    """Ten memories by the small model, of which the large one has made four anew."""
    make_memory(bot, "The dog sleeps in the hall")
    make_memories(bot, 9)
    embed_pending(scope_of(bot))
    settings.EMBEDDING_MODEL = LARGE
    embed_pending(scope_of(bot), limit=4)
    openai.requests.clear()
    return bot


def waiting(task: str) -> list[ProcrastinateJob]:
    return list(ProcrastinateJob.objects.filter(task_name=task, status="todo"))


def models_asked(openai: OpenAIServer) -> dict[str, str]:
    """By which model each text was embedded."""
    return {text: request.body["model"] for request in openai.requests for text in request.texts}


def old_vectors(instance: Instance) -> int:
    return Embedding.objects.filter(instance=instance, generation=OLD).count()


def test_what_is_saved_is_found_by_meaning_before_the_switch(changing: Instance, openai: OpenAIServer) -> None:
    make_memory(changing, "The invoice is overdue")
    assert "The invoice is overdue" not in texts(find(changing, "payment", mode="vector"))
    assert embed_fresh(scope_of(changing)) == 1
    assert models_asked(openai) == {"payment": SMALL, "The invoice is overdue": SMALL}
    results = find(changing, "payment", mode="vector")
    assert (texts(results)[0], results.reason) == ("The invoice is overdue", "")
    assert (states(changing), old_vectors(changing)) == ({"ready": 11}, 11)
    assert embed_fresh(scope_of(changing)) == 0

    assert embed_pending(scope_of(changing)) == 7
    changing.refresh_from_db()
    assert (changing.embedding_model, vectors(changing), old_vectors(changing)) == (LARGE, 11, 0)
    assert texts(find(changing, "payment", mode="vector"))[0] == "The invoice is overdue"
    assert states(changing) == {"ready": 11}


def test_what_is_corrected_is_found_by_what_it_says_now(changing: Instance, openai: OpenAIServer) -> None:
    memory = Memory.objects.get(content="The dog sleeps in the hall")
    change(scope_of(changing), memory.id, MemoryChanges(content="The invoice is overdue"))
    assert memory.id not in {hit.memory.id for hit in find(changing, "puppy", mode="vector").hits}
    embed_fresh(scope_of(changing))
    similarity = {
        query: next(hit.found.similarity for hit in find(changing, query, mode="vector").hits if hit.memory == memory)
        for query in ("payment", "puppy")
    }
    assert (similarity["payment"] or 0) > 0.3 > (similarity["puppy"] or 0)
    assert models_asked(openai)["The invoice is overdue"] == SMALL
    embed_pending(scope_of(changing))
    assert (states(changing), old_vectors(changing)) == ({"ready": 10}, 0)


def test_the_old_model_may_be_the_offline_one(hashed: Instance, openai: OpenAIServer) -> None:
    make_memories(hashed, 6)
    embed_pending(scope_of(hashed))
    change_instance(scope_of(hashed), InstanceChanges(embedder="openai"))
    make_memory(hashed, "The invoice is overdue")
    embed_fresh(scope_of(hashed))
    assert texts(find(hashed, "overdue invoice", mode="vector"))[0] == "The invoice is overdue"
    assert (openai.requests, states(hashed)) == ([], {"ready": 7})


def test_the_same_text_is_not_asked_for_again(changing: Instance, openai: OpenAIServer) -> None:
    make_memory(changing, "The dog sleeps in the hall", category="event")
    assert (embed_fresh(scope_of(changing)), openai.requests) == (1, [])
    assert (states(changing), old_vectors(changing)) == ({"ready": 11}, 11)


# The job


def test_it_does_not_wait_for_the_long_job(changing: Instance) -> None:
    make_memory(changing, "The invoice is overdue")
    make_memory(changing, "The garage is open")
    (job,) = waiting("embed_fresh_memories")
    (long,) = waiting("embed_memories")
    assert job.lock != long.lock
    jobs.embed_fresh_memories(**job.args)
    assert states(changing) == {"ready": 12}


def test_nobody_is_asked_when_no_model_changes(bot: Instance, openai: OpenAIServer) -> None:
    make_memory(bot, "The invoice is overdue")
    assert (embed_fresh(scope_of(bot)), waiting("embed_fresh_memories"), openai.requests) == (0, [], [])
    jobs.embed_fresh_memories(instance_id="01890000-0000-7000-8000-000000000000")


def test_it_goes_on_where_it_stopped(changing: Instance, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "ATTEMPTS", 1)
    saved = [f"{animal} in the garden" for animal in ("Bears", "Cats", "Dogs", "Hens", "Owls", "Rats")]
    for content in saved:
        make_memory(changing, content)
    openai.fail("server_error", after=1)
    with pytest.raises(Unavailable):
        embed_fresh(scope_of(changing))
    assert states(changing) == {"ready": 14, "pending": 2}
    openai.recover()
    assert embed_fresh(scope_of(changing)) == 2
    assert openai.embedded() == [*saved, *saved[4:]], "nothing that was stored is asked for again"


# When the old model is gone


def test_without_the_old_model_words_find_it_and_the_change_goes_on(
    bot: Instance, openai: OpenAIServer, settings: Any
) -> None:
    make_memories(bot, 6)
    embed_pending(scope_of(bot))
    change_instance(scope_of(bot), InstanceChanges(embedder="offline"))
    settings.OPENAI_API_KEY = ""
    make_memory(bot, "The invoice is overdue")
    assert (embed_fresh(scope_of(bot)), states(bot)) == (0, {"ready": 6, "pending": 1})
    results = find(bot, "invoice")
    assert (texts(results), results.mode) == (["The invoice is overdue"], "keyword")
    assert "No OpenAI or Azure key reaches this instance." in results.reason
    assert embed_pending(scope_of(bot)) == 7
    assert (states(bot), vectors(bot), old_vectors(bot)) == ({"ready": 7}, 7, 0)


def test_a_model_the_api_no_longer_knows_is_given_up(changing: Instance, openai: OpenAIServer) -> None:
    make_memory(changing, "The invoice is overdue")
    openai.fail("not_found")
    assert (embed_fresh(scope_of(changing)), states(changing)) == (0, {"ready": 10, "pending": 1})
    openai.recover()
    embed_pending(scope_of(changing))
    assert (states(changing), vectors(changing)) == ({"ready": 11}, 11)


# At the switch


@pytest.mark.django_db(transaction=True)
def test_a_switch_while_the_old_model_is_asked_leaves_nothing_of_it(changing: Instance, openai: OpenAIServer) -> None:
    make_memory(changing, "The invoice is overdue")

    def switch() -> None:
        embed_pending(scope_of(Instance.objects.get(id=changing.id)))

    openai.meanwhile(lambda: in_another_connection(switch))
    embed_fresh(scope_of(changing))
    assert set(openai.embedded()) >= {"The invoice is overdue"}
    changing.refresh_from_db()
    assert (changing.embedding_model, vectors(changing), old_vectors(changing)) == (LARGE, 11, 0)
    assert states(changing) == {"ready": 11}


def test_what_the_new_model_has_missed_is_pending_after_the_switch(changing: Instance) -> None:
    memory = make_memory(changing, "The invoice is overdue")
    embed_fresh(scope_of(changing))

    def save_behind_its_back(done: int) -> None:
        """As another server does whose clock is late."""
        Embedding.objects.filter(instance=changing, memory_id=memory.id).delete()
        with connection.cursor() as cursor:
            lowest = "UPDATE memories_chunk SET id = '00000000-0000-7000-8000-000000000001' WHERE memory_id = %s"
            cursor.execute(lowest, [memory.id])

    embed_pending(scope_of(changing), progress=save_behind_its_back)
    assert Chunk.objects.get(memory_id=memory.id).live
    assert (states(changing), old_vectors(changing)) == ({"ready": 10, "pending": 1}, 0)
    assert len(waiting("embed_memories")) == 1
    embed_pending(scope_of(changing))
    assert (states(changing), vectors(changing)) == ({"ready": 11}, 11)
