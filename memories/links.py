"""Links from memories to what was said: conversations and messages of the same instance, or an error."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from accounts.access import Scope
from conversations.models import Conversation, Message
from memories.draft import MemoryDraft
from memories.models import Memory
from memoryconsole.errors import Invalid


def check(scope: Scope, drafts: Iterable[MemoryDraft]) -> None:
    drafts = list(drafts)
    _check_conversations(scope, {id for draft in drafts if (id := draft.source_conversation_id)})
    _check_messages(scope, {id for draft in drafts for id in draft.source_message_ids})


def check_fields(scope: Scope, fields: Mapping[str, Any]) -> None:
    conversation = fields.get("source_conversation_id")
    _check_conversations(scope, {conversation} if conversation else set())
    _check_messages(scope, set(fields.get("source_message_ids") or []))


def _check_conversations(scope: Scope, ids: set[UUID]) -> None:
    if ids and Conversation.objects.filter(instance=scope.instance, id__in=ids).count() != len(ids):
        raise Invalid({"sourceConversationId": ["There is no such conversation in this instance."]})


def _check_messages(scope: Scope, ids: set[UUID]) -> None:
    if ids and Message.objects.filter(instance=scope.instance, id__in=ids).count() != len(ids):
        raise Invalid({"sourceMessageIds": ["There is no such message in this instance."]})


def messages_of(scope: Scope, memory: Memory) -> list[Message]:
    """The messages it was learnt from that are still there, in the order they were said."""
    if not memory.source_message_ids:
        return []
    rows = Message.objects.filter(instance=scope.instance, id__in=memory.source_message_ids)
    return list(rows.order_by("conversation_id", "position"))
