"""Links from memories to what was said: conversations and messages of the same instance, or an error.

Whoever writes looks before, and once more when the database refuses: somebody may have been forgotten meanwhile.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from accounts.access import Scope
from conversations.models import Conversation, Message
from memories.draft import MemoryDraft
from memories.models import Memory
from memoryconsole.errors import Invalid

NO_CONVERSATION = "There is no such conversation in this instance."
NO_MESSAGE = "There is no such message in this instance."


def check(scope: Scope, drafts: Sequence[MemoryDraft], *, in_list: bool = False) -> None:
    """Of a list, each memory with a wrong link is named by its place."""
    conversations = _missing(Conversation, scope, {id for draft in drafts if (id := draft.source_conversation_id)})
    messages = _missing(Message, scope, {id for draft in drafts for id in draft.source_message_ids})
    errors = {}
    for n, draft in enumerate(drafts) if conversations or messages else ():
        place = f"memories.{n}." if in_list else ""
        if draft.source_conversation_id in conversations:
            errors[f"{place}sourceConversationId"] = [NO_CONVERSATION]
        if not messages.isdisjoint(draft.source_message_ids):
            errors[f"{place}sourceMessageIds"] = [NO_MESSAGE]
    if errors:
        raise Invalid(errors)


def check_fields(scope: Scope, fields: Mapping[str, Any]) -> None:
    conversation = fields.get("source_conversation_id")
    if conversation and _missing(Conversation, scope, {conversation}):
        raise Invalid({"sourceConversationId": [NO_CONVERSATION]})
    if _missing(Message, scope, set(fields.get("source_message_ids") or [])):
        raise Invalid({"sourceMessageIds": [NO_MESSAGE]})


def _missing(model: type[Conversation] | type[Message], scope: Scope, ids: set[UUID]) -> set[UUID]:
    if not ids:
        return set()
    return ids - set(model.objects.filter(instance=scope.instance, id__in=ids).values_list("id", flat=True))


def messages_of(scope: Scope, memory: Memory) -> list[Message]:
    """The messages it was learnt from that are still there, in the order they were said."""
    if not memory.source_message_ids:
        return []
    rows = Message.objects.filter(instance=scope.instance, id__in=memory.source_message_ids)
    return list(rows.order_by("conversation_id", "position"))
