"""Trying extraction: it shows what would be learnt, and stores nothing."""

import pytest

from conversations.models import Message
from instances.models import Instance
from memories.learning.extraction import Learnt, try_extraction
from memories.learning.messages import Source, messages_in, source_of
from memories.models import AuditEntry, Chunk, Embedding, Job, Memory, MemoryVersion
from tests.factories import make_conversation, scope_of
from tests.openai_server import OpenAIServer
from tests.working import waiting, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("openai")]


def rows() -> list[int]:
    models = (Memory, MemoryVersion, Chunk, Embedding, Job, AuditEntry)
    return [model.objects.count() for model in models] + [len(waiting())]


def test_it_says_what_would_happen_and_stores_nothing(bot: Instance, openai: OpenAIServer) -> None:
    tea = "Alice Miller prefers strong black tea with fresh lemon every single morning"
    conversation = make_conversation(bot, tea, "Noted")
    work()
    text = "\n".join([f"user: {tea}", f"user: {tea} now", f"User: {tea} at 7", "user: Bob plays chess"])
    before = rows()
    learnt = try_extraction(scope_of(bot), Source(), messages_in(text, bot))
    assert [outcome.event for outcome in learnt.outcomes] == ["seen", "updated", "flagged", "created"]
    assert [bool(outcome.known) for outcome in learnt.outcomes] == [True, True, True, False]
    assert rows() == before
    assert Memory.objects.get().content == tea
    messages = list(Message.objects.filter(conversation_id=conversation.id).order_by("position"))
    learnt = try_extraction(scope_of(bot), source_of(conversation), messages)
    assert [outcome.event for outcome in learnt.outcomes] == ["seen"]
    assert rows() == before


def test_nothing_to_look_at(bot: Instance, openai: OpenAIServer) -> None:
    assert try_extraction(scope_of(bot), Source(), messages_in("  \n", bot)) == Learnt([], 0, 0)
    assert openai.requests == []


def test_a_pasted_text_is_read_as_messages(bot: Instance) -> None:
    messages = messages_in("Hello\nthere\nassistant: Hi\nHow are you?\nUSER: Note: fine\n", bot)
    assert [(message.role, message.content) for message in messages] == [
        ("user", "Hello\nthere"),
        ("assistant", "Hi\nHow are you?"),
        ("user", "Note: fine"),
    ]
