"""Storing conversations and their messages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Annotated
from uuid import UUID
from zoneinfo import available_timezones

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from psycopg.errors import UniqueViolation
from pydantic import AfterValidator, Field, StringConstraints

from accounts.access import Scope
from conversations import working_memory
from conversations.models import Conversation, Message, MessageRole
from memories.draft import MAX_NAME, Name, Short
from memories.learning import follow_up
from memoryconsole.errors import Taken
from memoryconsole.finding import find_among
from memoryconsole.ids import uuid7, uuid7_at
from memoryconsole.inputs import Input, Moment, Perhaps, Text, at_most
from memoryconsole.scrub import scrub

MAX_MESSAGE = 100_000
MAX_MESSAGES = 1000
NO_CONVERSATION = "There is no such conversation in this instance."

# Messages by role, content and date.
Dated = dict[tuple[str, str, datetime], list[Message]]


# What they mean is up to the machine, and not every machine has them.
NO_PLACES = {"localtime", "Factory"}


@cache
def _time_zones() -> set[str]:
    """Python looks at every file of the system's database each time."""
    return available_timezones() - NO_PLACES


def _known_zone(name: str) -> str:
    if name and name not in _time_zones():
        raise ValueError(f"“{name}” is not a time zone. Use a name like Europe/Berlin.")
    return name


class ConversationDraft(Input):
    """A conversation; sending the same `externalId` again finds the one that is there."""

    external_id: Annotated[Name, Perhaps] = ""
    channel: Annotated[Short, Perhaps] = ""
    user_id: Annotated[Name, Perhaps] = ""
    title: Annotated[Name, at_most(MAX_NAME), Perhaps] = ""
    time_zone: Annotated[Short, AfterValidator(_known_zone), Perhaps] = ""


class MessageDraft(Input):
    role: MessageRole
    content: Annotated[Text, StringConstraints(min_length=1, max_length=MAX_MESSAGE)]
    created_at: Moment | None = None
    external_id: Annotated[Name, Perhaps] = ""


class MessageDrafts(Input):
    messages: Annotated[list[MessageDraft], Field(min_length=1, max_length=MAX_MESSAGES)]


COUNTED = ("message_count", "last_message_at", "closed_at", "extracted_through", "told_through")


@dataclass(frozen=True, slots=True)
class Opened:
    conversation: Conversation
    is_new: bool


def conversations_of(
    scope: Scope, *, external_id: str = "", channel: str = "", user_id: str = ""
) -> QuerySet[Conversation]:
    """The conversations with this external id, channel and end user; an empty value means any."""
    wanted = {"external_id": external_id, "channel": channel, "owner": user_id}
    filters = {column: value for column, value in wanted.items() if value}
    return Conversation.objects.filter(instance=scope.instance, **filters)


def conversations_by_id(scope: Scope, ids: Iterable[UUID | None]) -> dict[UUID | None, Conversation]:
    """The conversations with these ids that exist. Makes no query if every id is None."""
    wanted = {id for id in ids if id}
    return {each.id: each for each in conversations_of(scope).filter(id__in=wanted)} if wanted else {}


def find_conversation(scope: Scope, raw_id: object) -> Conversation:
    """The only way from an id in a request to a conversation."""
    return find_among(conversations_of(scope), raw_id, NO_CONVERSATION)


def _find_locked(scope: Scope, raw_id: object) -> Conversation:
    """The same, with its row locked until the transaction ends."""
    return find_among(conversations_of(scope).select_for_update(), raw_id, NO_CONVERSATION)


def hold_conversation(scope: Scope, id: UUID) -> Conversation | None:
    """Lock the conversation until the transaction ends, if it still exists. Waits while messages are added to it."""
    return conversations_of(scope).filter(id=id).select_for_update(no_key=True).first()


def messages_of(scope: Scope, conversation: Conversation) -> QuerySet[Message]:
    return Message.objects.filter(instance=scope.instance, conversation_id=conversation.id)


def open_conversation(scope: Scope, draft: ConversationDraft, *, started_at: datetime | None = None) -> Opened:
    """A new conversation, or the one that already has this external id. A new one gets the date `started_at`."""
    scope.require_write()
    now = started_at or timezone.now()
    conversation = Conversation(
        instance=scope.instance,
        id=uuid7_at(started_at) if started_at else uuid7(),
        external_id=draft.external_id,
        channel=draft.channel,
        owner=draft.user_id,
        title=scrub(draft.title)[0],
        time_zone=draft.time_zone,
        created_at=now,
        last_message_at=now,
    )
    try:
        with transaction.atomic():
            conversation.save(force_insert=True)
    except IntegrityError as error:
        if not isinstance(error.__cause__, UniqueViolation):
            raise
        if found := conversations_of(scope).filter(external_id=draft.external_id).first():
            return Opened(_as_of_user(scope, found, draft.user_id), is_new=False)
        # It was deleted between the two queries.
        return open_conversation(scope, draft, started_at=started_at)
    return Opened(conversation, is_new=True)


def _as_of_user(scope: Scope, conversation: Conversation, user_id: str) -> Conversation:
    """A conversation that began before its end user was known becomes theirs; nobody gets another user's."""
    if user_id and user_id != conversation.owner:
        rows = conversations_of(scope).filter(id=conversation.id, owner__in=("", user_id))
        if not rows.update(owner=user_id):
            raise Taken({"externalId": ["There is a conversation of another end user by this name."]})
        conversation.owner = user_id
    return conversation


def add_messages(scope: Scope, raw_id: object, drafts: Sequence[MessageDraft], *, learn: bool = True) -> list[Message]:
    """Append messages in the given order, and return them as stored.

    A request may be sent again if its answer was lost, so a message that is stored already is not stored twice. It is
    recognised by its external id, or without one by its role, content and date. If a known external id comes with other
    content, nothing is stored.

    Messages are never extracted if memory is switched off when they are stored, or if `learn` is false.
    """
    scope.require_write()
    with transaction.atomic():
        # With the row locked, requests append one after the other: positions have no gaps and no duplicates.
        conversation = _find_locked(scope, raw_id)
        known, dated = _known_messages(scope, conversation, drafts), _dated_messages(scope, conversation, drafts)
        messages = [_known_or_built(scope, conversation, draft, known, dated) for draft in drafts]
        _refuse_changed_content(drafts, messages)
        new = list(dict.fromkeys(message for message in messages if message._state.adding))
        for offset, message in enumerate(new, start=1):
            message.position = conversation.message_count + offset
        Message.objects.bulk_create(new)
        if new:
            learn = learn and scope.instance.memory_enabled
            _count(conversation, new, learn=learn)
            if learn and follow_up.may_learn(scope):
                _queue_follow_up(scope, conversation, new)
    return messages


def _count(conversation: Conversation, new: Sequence[Message], *, learn: bool) -> None:
    conversation.message_count += len(new)
    # A date in the future, from a wrong clock or time zone, must not keep the conversation from becoming quiet.
    latest = min(timezone.now(), max(message.created_at for message in new))
    conversation.last_message_at = max(conversation.last_message_at, latest)
    conversation.closed_at = None
    if not learn:
        conversation.extracted_through = conversation.told_through = conversation.message_count
    conversation.save(update_fields=COUNTED)


def _queue_follow_up(scope: Scope, conversation: Conversation, new: Sequence[Message]) -> None:
    if any(message.role == MessageRole.ASSISTANT for message in new):
        follow_up.queue(scope, follow_up.EXTRACT, conversation.id)
    if working_memory.is_too_long(conversation):
        follow_up.queue(scope, follow_up.SUMMARISE, conversation.id)


def close(scope: Scope, raw_id: object) -> Conversation:
    """Mark the conversation as finished, so that the rest is learnt and its episode written now. Another message opens
    it again."""
    scope.require_write()
    with transaction.atomic():
        conversation = _find_locked(scope, raw_id)
        if conversation.closed_at is None:
            conversation.closed_at = timezone.now()
            conversation.save(update_fields=["closed_at"])
            if follow_up.may_learn(scope):
                follow_up.finish(scope, conversation)
    return conversation


def _known_messages(scope: Scope, conversation: Conversation, drafts: Sequence[MessageDraft]) -> dict[str, Message]:
    ids = [draft.external_id for draft in drafts if draft.external_id]
    rows = messages_of(scope, conversation).filter(external_id__in=ids)
    return {message.external_id: message for message in rows} if ids else {}


def _dated_messages(scope: Scope, conversation: Conversation, drafts: Sequence[MessageDraft]) -> Dated:
    """The latest messages without an external id that have the date of a draft. A request has at most MAX_MESSAGES."""
    moments = {draft.created_at for draft in drafts if draft.created_at and not draft.external_id}
    latest = messages_of(scope, conversation).filter(position__gt=conversation.message_count - MAX_MESSAGES)
    rows = latest.filter(external_id="", created_at__in=moments).order_by("position") if moments else ()
    found: Dated = {}
    for message in rows:
        found.setdefault((message.role, message.content, message.created_at), []).append(message)
    return found


def _known_or_built(
    scope: Scope, conversation: Conversation, draft: MessageDraft, known: dict[str, Message], dated: Dated
) -> Message:
    """The stored message, or a new one. An external id twice in a request is one message, the same content two."""
    built = _built(scope, conversation, draft)
    if draft.external_id:
        return known.setdefault(draft.external_id, built)
    same = dated.get((built.role, built.content, built.created_at))
    return same.pop(0) if same else built


def _refuse_changed_content(drafts: Sequence[MessageDraft], messages: Sequence[Message]) -> None:
    """The stored content is scrubbed again: it may hold credentials of a kind that was not known when it was stored."""
    errors = {
        f"messages.{place}.externalId": [f"“{draft.external_id}” is there already and says something else."]
        for place, (draft, message) in enumerate(zip(drafts, messages, strict=True))
        if draft.external_id and (draft.role, scrub(draft.content)[0]) != (message.role, scrub(message.content)[0])
    }
    if errors:
        raise Taken(errors)


def _built(scope: Scope, conversation: Conversation, draft: MessageDraft) -> Message:
    return Message(
        instance=scope.instance,
        id=uuid7(),
        conversation_id=conversation.id,
        role=draft.role,
        content=scrub(draft.content)[0],
        external_id=draft.external_id,
        created_at=draft.created_at or timezone.now(),
    )
