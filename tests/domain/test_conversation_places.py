"""Memories are numbered within their conversation, also if many arrive at the same time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from instances.models import Instance
from memories.draft import MemoryDraft
from memories.models import Memory
from memories.store import save, save_many
from tests.domain.looking import in_another_connection
from tests.factories import correct, make_conversation, make_memory, scope_of

pytestmark = pytest.mark.django_db


def places(instance: Instance) -> list[int]:
    rows = Memory.objects.filter(instance=instance).order_by("conversation_position")
    return list(rows.values_list("conversation_position", flat=True))


def test_memories_are_numbered_in_their_conversation(bot: Instance) -> None:
    one, other = make_conversation(bot), make_conversation(bot)
    first = make_memory(bot, "a", sourceConversationId=str(one.id))
    drafts = [MemoryDraft(content=text, source_conversation_id=id) for text, id in
              [("b", one.id), ("c", other.id), ("d", one.id), ("e", None)]]  # fmt: skip
    bulk = [saved.memory for saved in save_many(scope_of(bot), drafts)]
    assert [memory.conversation_position for memory in [first, *bulk]] == [1, 2, 1, 3, 0]


def test_a_memory_that_moves_goes_to_the_end(bot: Instance) -> None:
    one, other = make_conversation(bot), make_conversation(bot)
    moving = make_memory(bot, "a", sourceConversationId=str(one.id))
    make_memory(bot, "b", sourceConversationId=str(other.id))
    correct(moving, sourceConversationId=str(other.id))
    assert Memory.objects.get(content="a").conversation_position == 2
    correct(moving, sourceConversationId=None)
    assert Memory.objects.get(content="a").conversation_position == 0


@pytest.fixture
def four_at_once() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.mark.django_db(transaction=True)
def test_in_parallel_no_two_have_the_same_place(bot: Instance, four_at_once: ThreadPoolExecutor) -> None:
    conversation = make_conversation(bot)

    def add(n: int) -> None:
        save(scope_of(bot), MemoryDraft(content=f"Memory {n}", source_conversation_id=conversation.id))

    list(four_at_once.map(lambda n: in_another_connection(add, n), range(20)))
    assert places(bot) == list(range(1, 21))
