"""Several batches of texts away at once: answered in any order, or not at all, each gets its own vectors."""

import time
from collections.abc import Callable
from threading import Barrier, Lock

import pytest
from django.db import connection, connections, transaction

from instances.models import Instance
from memories.asking import Unavailable
from memories.embedding import batches, embedder
from memories.embedding.backfill import embed_pending
from memories.embedding.batches import MAX_IN_FLIGHT
from memories.models import Embedding, Memory
from memories.search.similar import similar
from tests.domain.looking import states, vectors
from tests.factories import make_memories, make_memory, scope_of
from tests.openai_server import OpenAIServer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("small_batches")]


class Crowd:
    """How many requests were waiting for their answers at the same time."""

    def __init__(self, seconds: float = 0.05) -> None:
        self.seconds, self.now, self.most = seconds, 0, 0
        self.lock = Lock()

    def __call__(self) -> None:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.seconds)
        with self.lock:
            self.now -= 1


def wait_until(is_so: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not is_so() and time.monotonic() < end:
        time.sleep(0.01)
    return is_so()


def test_an_api_that_answers_soon_is_asked_several_times_at_once(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 4 * (1 + MAX_IN_FLIGHT))
    # After the first answer, none is given before so many are waiting for one.
    barrier = Barrier(MAX_IN_FLIGHT, timeout=20)
    openai.meanwhile(lambda: None)
    openai.meanwhile(barrier.wait, times=MAX_IN_FLIGHT)
    progress: list[int] = []
    assert embed_pending(scope_of(bot), progress=progress.append) == 4 * (1 + MAX_IN_FLIGHT)
    assert progress == [4 * n for n in range(1, 2 + MAX_IN_FLIGHT)]
    assert not barrier.broken


def test_never_more_than_a_few_at_once(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 4 * 3 * MAX_IN_FLIGHT)
    crowd = Crowd()
    openai.meanwhile(crowd, times=3 * MAX_IN_FLIGHT)
    embed_pending(scope_of(bot))
    assert (crowd.most, states(bot)) == (MAX_IN_FLIGHT, {"ready": 4 * 3 * MAX_IN_FLIGHT})


def test_an_api_that_takes_its_time_is_asked_once_at_a_time(
    bot: Instance, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "QUICK_SECONDS", 0.01)
    make_memories(bot, 16)
    crowd = Crowd()
    openai.meanwhile(crowd, times=4)
    embed_pending(scope_of(bot))
    assert (crowd.most, states(bot)) == (1, {"ready": 16})


def test_each_memory_gets_its_own_vector(bot: Instance, openai: OpenAIServer) -> None:
    words = ["dog", "car", "lunch", "flight", "invoice", "doctor"]
    pairs = [(make_memory(bot, f"{word} one"), make_memory(bot, f"{word} two")) for word in words]
    openai.meanwhile(lambda: time.sleep(0.2), times=2)  # the first ones of those that are away are answered last
    embed_pending(scope_of(bot))
    for one, two in pairs:
        [(nearest, cosine)] = similar(scope_of(bot), one, 1)
        assert (nearest.id, cosine > 0.5) == (two.id, True)


def test_what_else_was_answered_is_stored_when_one_batch_fails(
    bot: Instance, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedder, "ATTEMPTS", 1)
    make_memories(bot, 4 * (1 + MAX_IN_FLIGHT))
    barrier = Barrier(MAX_IN_FLIGHT, timeout=20)
    openai.meanwhile(lambda: None)
    openai.meanwhile(barrier.wait, times=MAX_IN_FLIGHT)
    openai.fail("server_error", times=1, after=1)
    progress: list[int] = []
    with pytest.raises(Unavailable, match="failed with status 500"):
        embed_pending(scope_of(bot), progress=progress.append)
    assert progress == [4 * n for n in range(1, 1 + MAX_IN_FLIGHT)]
    assert states(bot) == {"ready": 4 * MAX_IN_FLIGHT, "pending": 4}
    assert embed_pending(scope_of(bot)) == 4
    assert states(bot) == {"ready": 4 * (1 + MAX_IN_FLIGHT)}


def test_after_a_failure_nothing_new_is_asked(
    bot: Instance, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedder, "ATTEMPTS", 1)
    make_memories(bot, 4 * 20)
    openai.fail("server_error", after=1)
    with pytest.raises(Unavailable):
        embed_pending(scope_of(bot))
    assert len(openai.requests) == 1 + MAX_IN_FLIGHT


def test_a_text_that_is_on_its_way_is_not_asked_for_again(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 4)
    for _ in range(3):
        make_memory(bot, "Alice likes tea")
        make_memories(bot, 3)
    embed_pending(scope_of(bot))
    assert openai.embedded().count("Alice likes tea") == 1
    assert (states(bot), vectors(bot)) == ({"ready": 16}, 16)
    said = Memory.objects.filter(instance=bot, content="Alice likes tea").values("id")
    assert len({tuple(e.vector) for e in Embedding.objects.filter(memory_id__in=said)}) == 1


def test_a_text_that_is_refused_in_several_batches(bot: Instance, openai: OpenAIServer) -> None:
    openai.refuse("unspeakable")
    for _ in range(4):
        make_memory(bot, "Something unspeakable")
        make_memories(bot, 3)
    embed_pending(scope_of(bot))
    assert states(bot) == {"ready": 12, "failed": 4}


@pytest.mark.django_db(transaction=True)
def test_no_connection_is_held_while_texts_are_away(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 8)
    ours = connections["default"]
    given_back: list[bool] = []
    openai.meanwhile(lambda: given_back.append(wait_until(lambda: ours.connection is None)), times=2)
    embed_pending(scope_of(bot))
    assert (given_back, states(bot)) == ([True, True], {"ready": 8})


@pytest.mark.django_db(transaction=True)
def test_texts_are_not_sent_from_inside_a_transaction(bot: Instance, openai: OpenAIServer) -> None:
    make_memories(bot, 1)
    with transaction.atomic(), pytest.raises(RuntimeError, match="never inside one"):
        embed_pending(scope_of(bot))
    assert openai.requests == []


@pytest.mark.django_db(transaction=True)
def test_the_offline_embedder_works_inside_a_transaction(hashed: Instance) -> None:
    make_memories(hashed, 9)
    with transaction.atomic():
        assert embed_pending(scope_of(hashed)) == 9
        assert connection.connection is not None
    assert states(hashed) == {"ready": 9}
