"""Checking that a memory's source conversation and source messages exist in its instance.

Writers check before they write, and again after an IntegrityError: the sources may have been deleted in between.
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
    """Raise if a link leads nowhere. `in_list` adds the memory's position in the request to the names of fields."""
    conversations = _missing(scope, Conversation, {id for draft in drafts if (id := draft.source_conversation_id)})
    messages = _missing(scope, Message, {id for draft in drafts for id in draft.source_message_ids})
    errors = {}
    for n, draft in enumerate(drafts) if conversations or messages else ():
        prefix = f"memories.{n}." if in_list else ""
        if draft.source_conversation_id in conversations:
            errors[f"{prefix}sourceConversationId"] = [NO_CONVERSATION]
        if not messages.isdisjoint(draft.source_message_ids):
            errors[f"{prefix}sourceMessageIds"] = [NO_MESSAGE]
    if errors:
        raise Invalid(errors)


def check_fields(scope: Scope, fields: Mapping[str, Any]) -> None:
    conversation = fields.get("source_conversation_id")
    if conversation and _missing(scope, Conversation, {conversation}):
        raise Invalid({"sourceConversationId": [NO_CONVERSATION]})
    if _missing(scope, Message, set(fields.get("source_message_ids") or [])):
        raise Invalid({"sourceMessageIds": [NO_MESSAGE]})


def _missing(scope: Scope, model: type[Conversation] | type[Message], ids: set[UUID]) -> set[UUID]:
    return ids - existing(scope, model, ids)


def existing(scope: Scope, model: type[Conversation] | type[Message], ids: set[UUID]) -> set[UUID]:
    """Those of the ids that the instance has."""
    if not ids:
        return set()
    return set(model.objects.filter(instance=scope.instance, id__in=ids).values_list("id", flat=True))


def messages_of(scope: Scope, memory: Memory) -> list[Message]:
    """The messages the memory was learnt from, as far as they still exist, in their order."""
    if not memory.source_message_ids:
        return []
    rows = Message.objects.filter(instance=scope.instance, id__in=memory.source_message_ids)
    return list(rows.order_by("conversation_id", "position"))
