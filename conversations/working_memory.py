"""The working memory of a conversation: the last messages in full, and a summary of the older ones."""

from collections.abc import Sequence
from dataclasses import dataclass

from accounts.access import Scope
from conversations.models import Conversation, Message

IN_FULL = 20
# The summary is made again when more messages than this are not in it, so that not every message costs an API call.
TOO_MANY = 40


@dataclass(frozen=True, slots=True)
class Context:
    """`messages` begin where the summary ends; without one they are the last twenty."""

    summary: str
    summarised_through: int
    messages: Sequence[Message]


def is_too_long(conversation: Conversation) -> bool:
    return conversation.message_count - conversation.summarised_through > TOO_MANY


def to_summarise(conversation: Conversation) -> range:
    """The positions of the messages that the next summary adds."""
    return range(conversation.summarised_through + 1, conversation.message_count - IN_FULL + 1)


def context_of(scope: Scope, conversation: Conversation) -> Context:
    """There is no gap between summary and messages, unless the summary is more than forty messages behind."""
    through = conversation.summarised_through
    first = max(through, conversation.message_count - TOO_MANY) if through else conversation.message_count - IN_FULL
    rows = Message.objects.filter(instance=scope.instance, conversation_id=conversation.id)
    messages = rows.filter(position__gt=first).order_by("position")
    return Context(conversation.summary, through, list(messages))
