"""Keeping what was said."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
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

# Messages by who said what, and when.
Dated = dict[tuple[str, str, datetime], list[Message]]


def _known_zone(name: str) -> str:
    if name and name not in available_timezones():
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


@dataclass(frozen=True, slots=True)
class Opened:
    conversation: Conversation
    is_new: bool


def conversations_of(
    scope: Scope, *, external_id: str = "", channel: str = "", user_id: str = ""
) -> QuerySet[Conversation]:
    """All of them, or those of this id, over this channel, with this end user."""
    asked = {"external_id": external_id, "channel": channel, "owner": user_id}
    narrowed = {column: value for column, value in asked.items() if value}
    return Conversation.objects.filter(instance=scope.instance, **narrowed)


def conversations_by_id(scope: Scope, ids: Iterable[UUID | None]) -> dict[UUID | None, Conversation]:
    """Those of them that are there, and of no id none; asks nobody where there are none."""
    wanted = {id for id in ids if id}
    return {each.id: each for each in conversations_of(scope).filter(id__in=wanted)} if wanted else {}


def find_conversation(scope: Scope, raw_id: object) -> Conversation:
    """The only way from an outside id to a conversation."""
    return find_among(conversations_of(scope), raw_id, NO_CONVERSATION)


def _held(scope: Scope, raw_id: object) -> Conversation:
    """The same, with its row, for the transaction."""
    return find_among(conversations_of(scope).select_for_update(), raw_id, NO_CONVERSATION)


def hold_conversation(scope: Scope, id: UUID) -> Conversation | None:
    """For the transaction, if it is still there: whoever is just adding messages to it is done before."""
    return conversations_of(scope).filter(id=id).select_for_update(no_key=True).first()


def messages_of(scope: Scope, conversation: Conversation) -> QuerySet[Message]:
    return Message.objects.filter(instance=scope.instance, conversation_id=conversation.id)


def open_conversation(scope: Scope, draft: ConversationDraft, *, started_at: datetime | None = None) -> Opened:
    """A new conversation, or the one that already has this external id. `started_at` dates one from before."""
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
            return Opened(found, is_new=False)
        # Deleted since.
        return open_conversation(scope, draft, started_at=started_at)
    return Opened(conversation, is_new=True)


def add_messages(scope: Scope, raw_id: object, drafts: Sequence[MessageDraft], *, learn: bool = True) -> list[Message]:
    """Append in the order given. A message whose external id is there already is not stored again, nor one of the same
    date that says the same: a request that got no answer is sent once more. An external id that says something else by
    now stores nothing at all.

    What is said while memory is switched off, or not to `learn` from, is never extracted.
    """
    scope.require_write()
    with transaction.atomic():
        # Whoever holds the conversation's row appends next: positions have no gaps and no twins.
        conversation = _held(scope, raw_id)
        known, dated = _known_messages(scope, conversation, drafts), _dated_messages(scope, conversation, drafts)
        answer = [_known_or_built(scope, conversation, draft, known, dated) for draft in drafts]
        _refuse_other_words(drafts, answer)
        new = list(dict.fromkeys(message for message in answer if message._state.adding))
        for offset, message in enumerate(new, start=1):
            message.position = conversation.message_count + offset
        Message.objects.bulk_create(new)
        if new:
            _count(scope, conversation, new, learn=learn and scope.instance.memory_enabled)
    return answer


def _count(scope: Scope, conversation: Conversation, new: Sequence[Message], *, learn: bool) -> None:
    conversation.message_count += len(new)
    # A clock that is fast, or local time taken for UTC, does not keep the conversation from going quiet.
    latest = min(timezone.now(), max(message.created_at for message in new))
    conversation.last_message_at = max(conversation.last_message_at, latest)
    conversation.closed_at = None
    if not learn:
        conversation.extracted_through = conversation.told_through = conversation.message_count
    conversation.save(update_fields=COUNTED)
    if learn and follow_up.may_learn(scope):
        _follow_up(scope, conversation, new)


COUNTED = ("message_count", "last_message_at", "closed_at", "extracted_through", "told_through")


def _follow_up(scope: Scope, conversation: Conversation, new: Sequence[Message]) -> None:
    if any(message.role == MessageRole.ASSISTANT for message in new):
        follow_up.queue(scope, follow_up.EXTRACT, conversation.id)
    if working_memory.is_too_long(conversation):
        follow_up.queue(scope, follow_up.SUMMARISE, conversation.id)


def close(scope: Scope, raw_id: object) -> Conversation:
    """Nothing more is expected: what happened in it may be told now. Whoever speaks again opens it again."""
    scope.require_write()
    with transaction.atomic():
        conversation = _held(scope, raw_id)
        if conversation.closed_at is None:
            conversation.closed_at = timezone.now()
            conversation.save(update_fields=["closed_at"])
            if conversation.told_through < conversation.message_count and follow_up.may_learn(scope):
                follow_up.queue(scope, follow_up.TELL, conversation.id)
    return conversation


def _known_messages(scope: Scope, conversation: Conversation, drafts: Sequence[MessageDraft]) -> dict[str, Message]:
    names = [draft.external_id for draft in drafts if draft.external_id]
    rows = messages_of(scope, conversation).filter(external_id__in=names)
    return {message.external_id: message for message in rows} if names else {}


def _dated_messages(scope: Scope, conversation: Conversation, drafts: Sequence[MessageDraft]) -> Dated:
    """The latest messages without an external id, as many as a request may have, that have the date of one of these."""
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
    """The same external id twice in one request is one message; the same words twice in it are two."""
    built = _built(scope, conversation, draft)
    if draft.external_id:
        return known.setdefault(draft.external_id, built)
    same = dated.get((built.role, built.content, built.created_at))
    return same.pop(0) if same else built


def _refuse_other_words(drafts: Sequence[MessageDraft], messages: Sequence[Message]) -> None:
    """What is there is scrubbed again, because credentials may be known that were not when it was stored."""
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
