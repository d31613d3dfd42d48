"""Messages as the language model reads them: what people and the assistant said, cut to what it can read at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID
from zoneinfo import ZoneInfo

from django.utils import timezone

from conversations.models import Conversation, Message, MessageRole
from instances.models import Instance
from memories.learning.prompts import Line
from memories.recall.prompt_block import without_blocks
from memoryconsole.ids import uuid7

# In characters. Together with the instructions, well within what any model can read.
LONGEST_MESSAGE = 24_000
LONGEST_WINDOW = 60_000
UTC = ZoneInfo("UTC")
SPOKEN = (MessageRole.USER, MessageRole.ASSISTANT)


@dataclass(frozen=True, slots=True)
class Source:
    """What memories take over from the conversation they are learnt from."""

    conversation_id: UUID | None = None
    owner: str = ""
    channel: str = ""
    zone: ZoneInfo = UTC


def source_of(conversation: Conversation) -> Source:
    zone = ZoneInfo(conversation.time_zone or "UTC")
    return Source(conversation.id, conversation.owner, conversation.channel, zone)


def spoken(messages: Sequence[Message]) -> list[Message]:
    """The messages of people and the assistant that say more than what recall put into them."""
    return [message for message in messages if message.role in SPOKEN and without_blocks(message.content)]


def lines_of(messages: Sequence[Message], *, after: int = 0) -> list[Line]:
    """The messages for a prompt; those at positions up to `after` are marked as not new."""
    return [
        Line(
            message.role,
            without_blocks(message.content)[:LONGEST_MESSAGE],
            message.created_at,
            message.position > after,
        )
        for message in messages
    ]


def fitting(messages: Iterable[Message], longest: int = LONGEST_WINDOW, *, least: int = 1) -> list[Message]:
    """The first messages, as many as a model can read at once, but at least `least`."""
    found: list[Message] = []
    for message in messages:
        longest -= length(message)
        if longest < 0 and len(found) >= least:
            break
        found.append(message)
    return found


def length(message: Message) -> int:
    """How many characters of the message are read."""
    return min(len(message.content), LONGEST_MESSAGE)


def messages_in(text: str, instance: Instance) -> list[Message]:
    """Split a pasted text into messages: a line that begins with `assistant:` or `user:` starts the next one."""
    messages: list[Message] = []
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        role = name.strip().lower()
        if colon and role in SPOKEN:
            messages.append(_unsaved(instance, role, rest.strip(), len(messages) + 1))
        elif messages:
            messages[-1].content += f"\n{line}"
        elif line.strip():
            messages.append(_unsaved(instance, MessageRole.USER, line, 1))
    return messages


def _unsaved(instance: Instance, role: str, text: str, position: int) -> Message:
    return Message(instance=instance, id=uuid7(), role=role, content=text, position=position, created_at=timezone.now())
