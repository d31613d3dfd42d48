"""The demo data of a first start: two instances whose contents are in `demo.toml`.

It is stored by the same functions as all other data, with dates in the weeks before today.
"""

import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.access import Actor, Scope, open_instance, require_superadmin
from conversations.models import Message
from conversations.store import ConversationDraft, MessageDraft, add_messages, open_conversation
from instances.models import Instance
from instances.store import InstanceDraft, create_instance, delete_instance
from memories.draft import MemoryChanges, MemoryDraft
from memories.store import change, save_many
from memoryconsole.inputs import read
from memoryconsole.turns import wait_for_turn

CONTENT = Path(__file__).with_name("demo.toml")

# Keys of an entry in the file that are not fields of a draft.
ABOUT_TIME = {"daysAgo", "occurredDaysAgo", "expiresInDays"}
ABOUT_SOURCE = {"conversation", "messages"}
EARLIER = "earlier"

# The messages of each conversation, by its `ref` in the file.
Messages = dict[str, list[Message]]


@transaction.atomic
def load_demo(actor: Actor) -> None:
    """Create the demo's instances with their contents, unless one of their slugs is taken."""
    wait_for_turn("demo")
    content = tomllib.loads(CONTENT.read_text(encoding="utf-8"))
    settings: Mapping[str, Any] = content["settings"]
    if Instance.objects.filter(slug__in=[entry["slug"] for entry in content["instance"]]).exists():
        return
    now = timezone.now()
    for instance in content["instance"]:
        draft = read(InstanceDraft, {**settings, "slug": instance["slug"], "name": instance["name"]})
        scope = Scope(create_instance(actor, draft, is_demo=True), actor)
        messages = {entry["ref"]: _add_conversation(scope, entry, now) for entry in instance["conversation"]}
        _add_memories(scope, instance["memory"], messages, now)


@transaction.atomic
def remove_demo(actor: Actor) -> dict[str, int]:
    """Delete every demo instance with all its contents, also those added since. Return how much was deleted."""
    require_superadmin(actor)
    wait_for_turn("demo")
    deleted = {"instances": 0, "memories": 0, "conversations": 0}
    for slug in Instance.objects.filter(is_demo=True).values_list("slug", flat=True):
        counts = {"instances": 1, **delete_instance(open_instance(actor, slug))}
        deleted = {name: deleted[name] + counts[name] for name in deleted}
    return deleted


def _add_conversation(scope: Scope, entry: Mapping[str, Any], now: datetime) -> list[Message]:
    started = now - timedelta(days=entry["daysAgo"])
    pause = timedelta(minutes=entry["minutesApart"])
    fields = {name: entry[name] for name in ("channel", "userId", "title")}
    draft = read(ConversationDraft, {**fields, "externalId": f"demo-{entry['ref']}"})
    opened = open_conversation(scope, draft, started_at=started)
    messages = [
        read(MessageDraft, {"role": role, "content": text, "createdAt": started + number * pause})
        for number, (role, text) in enumerate(entry["messages"])
    ]
    return add_messages(scope, opened.conversation.id, messages, learn=False)


def _add_memories(scope: Scope, entries: Sequence[Mapping[str, Any]], messages: Messages, now: datetime) -> None:
    """In the order they were learnt. One with an earlier text is saved with that, and then changed."""
    dated = sorted(((_written_at(entry, messages, now), entry) for entry in entries), key=lambda pair: pair[0])
    drafts = [_draft(entry, messages, now) for _, entry in dated]
    stored = save_many(scope, drafts, written_at=[moment for moment, _ in dated])
    for saved, (_, entry) in zip(stored, dated, strict=True):
        if EARLIER in entry:
            fields = {"content": entry["content"], "supersedeReason": entry[EARLIER]["reason"]}
            change(scope, saved.memory.id, read(MemoryChanges, fields))


def _draft(entry: Mapping[str, Any], messages: Messages, now: datetime) -> MemoryDraft:
    fields = {name: value for name, value in entry.items() if name not in ABOUT_TIME | ABOUT_SOURCE | {EARLIER}}
    if EARLIER in entry:
        fields["content"] = entry[EARLIER]["content"]
    if "occurredDaysAgo" in entry:
        fields["occurredAt"] = now - timedelta(days=entry["occurredDaysAgo"])
    if "expiresInDays" in entry:
        fields["expiresAt"] = now + timedelta(days=entry["expiresInDays"])
    if "conversation" in entry:
        sources = _sources(entry, messages)
        fields["sourceConversationId"] = sources[0].conversation_id
        fields["sourceMessageIds"] = [message.id for message in sources]
        fields.setdefault("source", "auto")
    return read(MemoryDraft, fields)


def _written_at(entry: Mapping[str, Any], messages: Messages, now: datetime) -> datetime:
    """Twenty seconds after the messages it was learnt from, or as many days ago as the entry says."""
    if "conversation" in entry:
        said_at: datetime = max(message.created_at for message in _sources(entry, messages))
        return min(said_at + timedelta(seconds=20), now)
    return now - timedelta(days=float(entry["daysAgo"]))


def _sources(entry: Mapping[str, Any], messages: Messages) -> list[Message]:
    """The messages the memory was learnt from; the file counts them from 1."""
    return [messages[entry["conversation"]][number - 1] for number in entry["messages"]]
