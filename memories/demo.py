"""Two assistants with something to look at, for a first start; `demo.toml` has what they know.

Everything is written by the functions everybody uses, only with dates in the weeks before today.
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

# What the file says about time and place, beside the fields of a draft.
ABOUT_TIME = {"daysAgo", "occurredDaysAgo", "expiresInDays"}
ABOUT_SOURCE = {"conversation", "messages"}
EARLIER = "earlier"

Said = dict[str, list[Message]]


@transaction.atomic
def load_demo(actor: Actor) -> None:
    """The demo's instances with all they contain; nothing when one of their names is taken."""
    wait_for_turn("demo")
    content = tomllib.loads(CONTENT.read_text(encoding="utf-8"))
    settings: Mapping[str, Any] = content["settings"]
    if Instance.objects.filter(slug__in=[found["slug"] for found in content["instance"]]).exists():
        return
    now = timezone.now()
    for found in content["instance"]:
        draft = read(InstanceDraft, {**settings, "slug": found["slug"], "name": found["name"]})
        scope = Scope(create_instance(actor, draft, is_demo=True), actor)
        said = {entry["ref"]: _converse(scope, entry, now) for entry in found["conversation"]}
        _remember(scope, found["memory"], said, now)


@transaction.atomic
def remove_demo(actor: Actor) -> dict[str, int]:
    """Every demo instance with everything in it, also what was added since; the answer is what went."""
    require_superadmin(actor)
    wait_for_turn("demo")
    gone = {"instances": 0, "memories": 0, "conversations": 0}
    for slug in Instance.objects.filter(is_demo=True).values_list("slug", flat=True):
        counts = {"instances": 1, **delete_instance(open_instance(actor, slug))}
        gone = {name: gone[name] + counts[name] for name in gone}
    return gone


def _converse(scope: Scope, entry: Mapping[str, Any], now: datetime) -> list[Message]:
    started = now - timedelta(days=entry["daysAgo"])
    pause = timedelta(minutes=entry["minutesApart"])
    facts = {name: entry[name] for name in ("channel", "userId", "title")}
    draft = read(ConversationDraft, {**facts, "externalId": f"demo-{entry['ref']}"})
    opened = open_conversation(scope, draft, started_at=started)
    messages = [
        read(MessageDraft, {"role": role, "content": text, "createdAt": started + number * pause})
        for number, (role, text) in enumerate(entry["messages"])
    ]
    return add_messages(scope, opened.conversation.id, messages, learn=False)


def _remember(scope: Scope, entries: Sequence[Mapping[str, Any]], said: Said, now: datetime) -> None:
    """In the order they were learnt; one that has changed since is saved as it was, and then changed."""
    dated = sorted(((_written_at(entry, said, now), entry) for entry in entries), key=lambda pair: pair[0])
    drafts = [_draft(entry, said, now) for _, entry in dated]
    stored = save_many(scope, drafts, written_at=[moment for moment, _ in dated])
    for saved, (_, entry) in zip(stored, dated, strict=True):
        if EARLIER in entry:
            fields = {"content": entry["content"], "supersedeReason": entry[EARLIER]["reason"]}
            change(scope, saved.memory.id, read(MemoryChanges, fields))


def _draft(entry: Mapping[str, Any], said: Said, now: datetime) -> MemoryDraft:
    fields = {name: value for name, value in entry.items() if name not in ABOUT_TIME | ABOUT_SOURCE | {EARLIER}}
    if EARLIER in entry:
        fields["content"] = entry[EARLIER]["content"]
    if "occurredDaysAgo" in entry:
        fields["occurredAt"] = now - timedelta(days=entry["occurredDaysAgo"])
    if "expiresInDays" in entry:
        fields["expiresAt"] = now + timedelta(days=entry["expiresInDays"])
    if "conversation" in entry:
        messages = said[entry["conversation"]]
        fields["sourceConversationId"] = messages[0].conversation_id
        fields["sourceMessageIds"] = [messages[number - 1].id for number in entry["messages"]]
        fields.setdefault("source", "auto")
    return read(MemoryDraft, fields)


def _written_at(entry: Mapping[str, Any], said: Said, now: datetime) -> datetime:
    """What was learnt in a conversation was learnt moments after it was said."""
    if "conversation" in entry:
        messages = said[entry["conversation"]]
        heard: datetime = max(messages[number - 1].created_at for number in entry["messages"])
        return min(heard + timedelta(seconds=20), now)
    return now - timedelta(days=float(entry["daysAgo"]))
