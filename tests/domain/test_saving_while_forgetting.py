"""Whoever is forgotten while somebody writes about them: the writer is told, and nothing is written."""

from collections.abc import Callable

import pytest

from accounts.access import Scope
from conversations.models import Conversation
from instances.models import Instance
from memories.draft import MemoryChanges, MemoryDraft
from memories.forgetting import forget
from memories.models import Memory
from memories.store import change, save, save_many
from memoryconsole.errors import Invalid
from tests.domain.looking import while_writing
from tests.factories import make_conversation, make_memory, scope_of

pytestmark = pytest.mark.django_db(transaction=True)

Write = Callable[[Scope, Conversation], object]


def save_one(scope: Scope, said: Conversation) -> None:
    save(scope, MemoryDraft(content="Ann likes tea", source_conversation_id=said.id))


def save_two(scope: Scope, said: Conversation) -> None:
    linked = MemoryDraft(content="Ann likes tea", source_conversation_id=said.id)
    save_many(scope, [MemoryDraft(content="Bob likes coffee"), linked])


def change_one(scope: Scope, said: Conversation) -> None:
    memory = Memory.objects.get(content="Somebody likes tea")
    change(scope, memory.id, MemoryChanges(content="Ann likes tea", source_conversation_id=said.id))


@pytest.mark.parametrize(
    ("write", "field"),
    [
        (save_one, "sourceConversationId"),
        (save_two, "memories.1.sourceConversationId"),
        (change_one, "sourceConversationId"),
    ],
)
def test_a_link_to_what_was_forgotten_meanwhile_is_named(bot: Instance, write: Write, field: str) -> None:
    scope, said = scope_of(bot), make_conversation(bot, "I like tea", userId="ann")
    make_memory(bot, "Somebody likes tea")
    with pytest.raises(Invalid) as told:
        while_writing(lambda: forget(scope, "ann"), write, scope, said)
    assert told.value.errors == {field: ["There is no such conversation in this instance."]}
    assert Memory.objects.get().content == "Somebody likes tea"
