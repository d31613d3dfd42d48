"""The list of an instance's conversations, and the messages and memories of one."""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Count

from accounts.access import Scope
from conversations.models import Conversation, Message, MessageRole
from conversations.store import conversations_of, messages_of
from memories.audit import note_private_reads
from memories.draft import Name, Short
from memories.filters import Filters, matching
from memories.models import Memory
from memories.paging import Order, Page, page_of
from memoryconsole.ids import parse_id
from memoryconsole.inputs import Input

RECENT = Order(("last_message_at", "id"))
SPOKEN = Order(("position",), descending=False)
TRANSCRIPT_SIZE = 200
SUGGESTED_FROM = 500
LINKED_SHOWN = 100


class ConversationFilters(Input):
    """Filters of the list; an empty one matches every conversation."""

    channel: Short = ""
    user: Name = ""


def list_page(
    scope: Scope, filters: ConversationFilters, *, number: int, size: int, anchor: str = ""
) -> Page[Conversation]:
    rows = conversations_of(scope, channel=filters.channel, user_id=filters.user)
    return page_of(rows, RECENT, number=number, size=size, total=rows.count(), anchor=anchor)


def recent_channels(scope: Scope) -> list[str]:
    """Suggestions for the filter. Only the latest conversations are read, so it costs the same in any instance."""
    latest = RECENT.sorted(conversations_of(scope)).values_list("channel", flat=True)[:SUGGESTED_FROM]
    return sorted({channel for channel in latest if channel})


def memories_per_conversation(scope: Scope, conversations: Sequence[Conversation]) -> dict[UUID | None, int]:
    ids = [conversation.id for conversation in conversations]
    rows = matching(scope, Filters()).filter(source_conversation_id__in=ids)
    return dict(rows.order_by().values_list("source_conversation_id").annotate(Count("id")))


def transcript_page(scope: Scope, conversation: Conversation, *, number: int, message: str = "") -> Page[Message]:
    """A page of the messages in order: the page that contains the id `message`, if there is such a message."""
    rows = messages_of(scope, conversation)
    id = parse_id(message)
    position = rows.filter(id=id).values_list("position", flat=True).first() if id else None
    if position is not None:
        number = (position - 1) // TRANSCRIPT_SIZE + 1
    return page_of(rows, SPOKEN, number=number, size=TRANSCRIPT_SIZE, total=conversation.message_count)


def last_messages(
    scope: Scope, conversation: Conversation, number: int, *, roles: Sequence[str] = MessageRole.values
) -> list[Message]:
    rows = messages_of(scope, conversation).filter(role__in=roles)
    return list(SPOKEN.sorted(rows, backwards=True)[:number])[::-1]


def recent_conversations(scope: Scope, number: int) -> list[Conversation]:
    return list(RECENT.sorted(conversations_of(scope).filter(message_count__gt=0))[:number])


def memories_from(scope: Scope, conversation: Conversation) -> list[Memory]:
    """The newest memories from this conversation: one more than the page shows, if there are more."""
    rows = matching(scope, Filters(conversation_id=conversation.id))
    found = list(rows.order_by("-id")[: LINKED_SHOWN + 1])
    note_private_reads(scope, found[:LINKED_SHOWN])
    return found
