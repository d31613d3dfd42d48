"""Ready means that what a memory says now has its vectors, whoever writes meanwhile."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from procrastinate.contrib.django.models import ProcrastinateJob

from instances.models import Instance
from memories import jobs
from memories.changing_many import change_many
from memories.draft import MemoryChanges
from memories.embedding.backfill import ask_for_embedding, try_failed_again
from memories.embedding.storing import Missing, mark_failed, mark_pending, mark_ready
from memories.models import Embedding, Memory
from memories.store import change
from tests.domain.looking import embed, find, in_another_connection, states, texts, vectors, while_writing
from tests.factories import make_instance, make_memories, make_memory, scope_of

pytestmark = pytest.mark.django_db(transaction=True)


def embedded_but_not_marked(instance: Instance, number: int = 1) -> list[Memory]:
    """As the worker leaves them between storing their vectors and marking them."""
    memories = make_memories(instance, number)
    embed(instance)
    Memory.objects.update(embedding="pending")
    return memories


def only(memories: list[Memory]) -> set[UUID]:
    return {memory.id for memory in memories}


@pytest.mark.parametrize("marked", [only, lambda memories: None], ids=["a batch", "all"])
def test_what_changes_while_it_is_marked_stays_pending(hashed: Instance, marked: Any) -> None:
    memories = embedded_but_not_marked(hashed, 3)

    def write() -> None:
        change(scope_of(hashed), memories[1].id, MemoryChanges(content="Something else now"))

    while_writing(write, mark_ready, hashed, hashed.embedding_generation, marked(memories))
    assert states(hashed) == {"ready": 2, "pending": 1}
    assert Memory.objects.get(embedding="pending").id == memories[1].id
    embed(hashed)
    assert (states(hashed), vectors(hashed)) == ({"ready": 3}, 4)


def test_what_changes_while_it_is_marked_as_refused_stays_pending(hashed: Instance) -> None:
    changed, kept = make_memory(hashed, "Something unspeakable"), make_memory(hashed, "Something unspeakable too")
    first, second = Missing(hashed, hashed.embedding_generation).next(2)

    def write() -> None:
        change(scope_of(hashed), changed.id, MemoryChanges(content="Something nice"))

    while_writing(write, mark_failed, hashed, first, "The embeddings API refused it.")
    mark_failed(hashed, second, "The embeddings API refused it.")
    found = {memory.id: (memory.embedding, memory.embedding_error) for memory in Memory.objects.all()}
    assert found == {changed.id: ("pending", ""), kept.id: ("failed", "The embeddings API refused it.")}


def test_the_text_of_a_version_that_is_refused_is_no_failure_of_the_memory(hashed: Instance) -> None:
    memory = make_memory(hashed, "Something unspeakable")
    (piece,) = Missing(hashed, hashed.embedding_generation).next(2)
    change(scope_of(hashed), memory.id, MemoryChanges(content="Something nice"))
    embed(hashed)
    mark_failed(hashed, piece, "The embeddings API refused it.")
    assert states(hashed) == {"ready": 1}


def test_others_write_while_it_is_marked(hashed: Instance) -> None:
    """Whoever changes many holds them in the same order."""
    memories = embedded_but_not_marked(hashed, 40)
    backwards = {memory.id for memory in reversed(memories)}

    def write(n: int) -> None:
        change_many(scope_of(hashed), [memory.id for memory in memories], {"importance": n % 10 + 1})

    def mark(_: int) -> None:
        with transaction.atomic():
            list(Memory.objects.order_by("id").select_for_update())
            Memory.objects.update(embedding="pending")
        mark_ready(hashed, hashed.embedding_generation, backwards)

    with ThreadPoolExecutor(4) as threads:
        for result in [threads.submit(in_another_connection, work, n) for n in range(8) for work in (write, mark)]:
            result.result(30)
    mark(0)
    assert states(hashed) == {"ready": 40}


def lose_a_vector(memory: Memory) -> None:
    """As it was until the memory's row was held while it is marked."""
    Embedding.objects.filter(instance=memory.instance, memory_id=memory.id).delete()


def test_what_has_lost_its_vector_gets_it_again(hashed: Instance) -> None:
    lost, kept = make_memory(hashed, "Alice likes tea"), make_memory(hashed, "Bob likes coffee")
    embed(hashed)
    elsewhere = make_memory(make_instance(), "Theirs")
    Memory.objects.filter(pk=elsewhere.pk).update(embedding="ready")
    lose_a_vector(lost)
    assert (embed(hashed), states(hashed)) == (0, {"ready": 2}), "nobody looks for it all the time"
    try_failed_again(scope_of(hashed))
    assert Memory.objects.get(embedding="pending").id == lost.id
    assert (embed(hashed), states(hashed), vectors(hashed)) == (1, {"ready": 2}, 2)
    assert texts(find(hashed, "tea", mode="vector"))[0] == lost.content
    assert Memory.objects.get(pk=kept.pk).updated_at == kept.updated_at


@pytest.mark.parametrize("ask", [lambda bot: jobs.embed_all_memories(0), lambda bot: ask_for_embedding(scope_of(bot))])
def test_it_is_looked_for_every_night_and_when_somebody_asks(hashed: Instance, ask: Any) -> None:
    lose_a_vector(embedded_memory(hashed))
    ask(hashed)
    queued = ProcrastinateJob.objects.filter(task_name="embed_memories", status="todo").latest("id")
    jobs.embed_memories(**queued.args)
    assert (states(hashed), vectors(hashed)) == ({"ready": 1}, 1)


def embedded_memory(instance: Instance) -> Memory:
    memory = make_memory(instance, "Alice likes tea")
    embed(instance)
    return memory


def test_vectors_that_were_given_up_meanwhile_are_not_missed(hashed: Instance) -> None:
    embedded_memory(hashed)
    Embedding.objects.filter(instance=hashed).update(generation=7)
    Instance.objects.filter(pk=hashed.pk).update(embedding_generation=7)
    assert (mark_pending(hashed, hashed.embedding_generation), states(hashed)) == (0, {"ready": 1})
