"""Making vectors: once for each text, in any number of goes, and by several at once."""

from array import array
from concurrent.futures import ThreadPoolExecutor

import pytest

from instances.models import Instance
from memories.asking import Unavailable
from memories.deletion import delete_memory
from memories.draft import MemoryChanges
from memories.embedding import embedder
from memories.embedding.backfill import ask_for_embedding, embed_pending, missing, try_failed_again
from memories.embedding.storing import store
from memories.models import Chunk, Embedding, Memory
from memories.store import change
from tests.domain.looking import in_another_connection, states, vectors
from tests.factories import make_instance, make_memories, make_memory, scope_of
from tests.openai_server import OpenAIServer

pytestmark = pytest.mark.django_db
SMALL = "text-embedding-3-small"


def test_what_is_pending_becomes_ready(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 3)
    assert (states(bot), missing(scope_of(bot))) == ({"pending": 3}, 3)
    assert embed_pending(scope_of(bot)) == 3
    assert (states(bot), missing(scope_of(bot)), vectors(bot)) == ({"ready": 3}, 0, 3)
    bot.refresh_from_db()
    assert bot.embedding_model == SMALL
    assert embed_pending(scope_of(bot)) == 0
    assert len(openai.requests) == 1, "three texts in one request, and none for nothing"


def test_without_a_model_nothing_happens(bot: Instance) -> None:
    make_memories(bot, 2)
    assert (embed_pending(scope_of(bot)), missing(scope_of(bot)), states(bot)) == (0, 2, {"pending": 2})


def test_the_speaker_is_embedded_once(bot: Instance, openai: OpenAIServer) -> None:
    make_memory(bot, "Carol: I like tea", owner="carol")
    make_memory(bot, "Likes coffee", owner="dave")
    embed_pending(scope_of(bot))
    assert sorted(openai.embedded()) == ["Carol: I like tea", "dave: Likes coffee"]


def test_when_it_was_said_is_not_embedded(bot: Instance, openai: OpenAIServer) -> None:
    make_memory(bot, "[8 May 2023] Carol: I like tea")
    make_memory(bot, "[9 May 2023] Carol: I like tea")
    embed_pending(scope_of(bot))
    assert openai.embedded() == ["Carol: I like tea"]


def test_the_same_text_is_embedded_once(bot: Instance, openai: OpenAIServer) -> None:
    make_memory(bot, "Alice likes tea")
    make_memory(bot, "Alice likes tea", category="fact")
    embed_pending(scope_of(bot))
    make_memory(bot, "Alice likes tea", tags=["drink"])
    embed_pending(scope_of(bot))
    assert openai.embedded() == ["Alice likes tea"]
    assert (states(bot), vectors(bot)) == ({"ready": 3}, 3)


def test_the_same_text_in_another_instance_is_asked_for_again(bot: Instance, openai: OpenAIServer) -> None:
    other = make_instance("sales-bot")
    for instance in (bot, other):
        make_memory(instance, "Alice likes tea")
        embed_pending(scope_of(instance))
    assert openai.embedded() == ["Alice likes tea"] * 2


@pytest.mark.usefixtures("small_batches")
def test_vectors_get_length_1_when_they_are_stored(bot: Instance) -> None:
    memory = make_memory(bot, "Alice likes tea")
    chunk = Chunk.objects.get(instance=bot, memory_id=memory.id)
    store(bot, bot.embedding_generation, {chunk.id: array("f", [0.3, 0.4, *[0.0] * 1534])})
    vector = Embedding.objects.get(instance=bot, chunk_id=chunk.id).vector
    assert vector[:3] == pytest.approx([0.6, 0.8, 0.0], abs=1e-3)


def test_a_limit(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 10)
    assert embed_pending(scope_of(bot), limit=6) == 6
    assert states(bot) == {"ready": 6, "pending": 4}
    assert embed_pending(scope_of(bot), limit=4) == 4
    assert states(bot) == {"ready": 10}
    assert embed_pending(scope_of(bot), limit=1) == 0


@pytest.mark.usefixtures("small_batches")
def test_a_long_memory_is_ready_when_all_of_it_is(bot: Instance, openai: OpenAIServer) -> None:
    memory = make_memory(bot, "\n\n".join(f"Chapter {n}. " + "Bears sleep. " * 100 for n in range(9)))
    chunks = Chunk.objects.filter(instance=bot, memory_id=memory.id).count()
    assert chunks > 5
    embed_pending(scope_of(bot), limit=5)
    assert states(bot) == {"pending": 1}
    assert embed_pending(scope_of(bot)) == chunks - 5
    assert states(bot) == {"ready": 1}


@pytest.mark.usefixtures("small_batches")
def test_it_goes_on_where_it_stopped(bot: Instance, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "ATTEMPTS", 1)
    make_memories(bot, 12)
    progress: list[int] = []
    openai.fail("server_error", after=2)
    with pytest.raises(Unavailable):
        embed_pending(scope_of(bot), progress=progress.append)
    assert (progress, states(bot)) == ([4, 8], {"ready": 8, "pending": 4})
    openai.recover()
    assert embed_pending(scope_of(bot)) == 4
    assert states(bot) == {"ready": 12}
    assert len(openai.embedded()) == 16, "nothing that was stored is asked for again"


def test_a_poisoned_answer_reaches_nothing(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 2)
    openai.fail("nan")
    with pytest.raises(Unavailable):
        embed_pending(scope_of(bot))
    assert (vectors(bot), states(bot)) == (0, {"pending": 2})


def test_a_text_that_is_refused_does_not_hold_up_the_others(bot: Instance, openai: OpenAIServer) -> None:
    openai.refuse("unspeakable")
    make_memories(bot, 3)
    make_memory(bot, "Something unspeakable")
    embed_pending(scope_of(bot))
    assert states(bot) == {"ready": 3, "failed": 1}
    assert "refused" in Memory.objects.get(embedding="failed").embedding_error
    asked = len(openai.requests)
    make_memory(bot, "Alice likes tea")
    embed_pending(scope_of(bot))
    assert (states(bot), len(openai.requests)) == ({"ready": 4, "failed": 1}, asked + 1)
    try_failed_again(scope_of(bot))
    embed_pending(scope_of(bot))
    assert states(bot) == {"ready": 4, "failed": 1}, "also when it is the only one"
    openai.recover()
    ask_for_embedding(scope_of(bot))
    embed_pending(scope_of(bot))
    assert states(bot) == {"ready": 5}
    assert not Memory.objects.exclude(embedding_error="").exists()


def test_when_everything_is_refused_no_text_is_to_blame(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 2)
    openai.fail("not_found")
    with pytest.raises(Unavailable, match="does not know"):
        embed_pending(scope_of(bot))
    assert states(bot) == {"pending": 2}


@pytest.mark.django_db(transaction=True)
def test_what_is_corrected_while_its_text_is_refused_is_asked_for_anew(bot: Instance, openai: OpenAIServer) -> None:
    openai.refuse("unspeakable")
    kept, changed = make_memory(bot, "An unspeakable word"), make_memory(bot, "Something unspeakable")

    def correct() -> None:
        change(scope_of(bot), changed.id, MemoryChanges(content="Something nice"))

    openai.meanwhile(lambda: in_another_connection(correct))
    embed_pending(scope_of(bot))
    assert dict(Memory.objects.values_list("id", "embedding")) == {kept.id: "failed", changed.id: "ready"}


@pytest.mark.django_db(transaction=True)
def test_a_chunk_may_go_while_its_text_is_away(bot: Instance, openai: OpenAIServer) -> None:
    kept, deleted, changed = make_memories(bot, 3)

    def others_write() -> None:
        delete_memory(scope_of(bot), deleted.id)
        change(scope_of(bot), changed.id, MemoryChanges(content="Something else now"))

    openai.meanwhile(lambda: in_another_connection(others_write))
    embed_pending(scope_of(bot))
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
        return int(in_another_connection(embed_pending, scope_of(bot)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert (states(bot), vectors(bot)) == ({"ready": 30}, 30)
