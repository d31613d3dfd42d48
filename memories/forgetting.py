"""Forgetting a person: deleting everything of one owner in one instance, in one transaction, with a receipt.

Deleted are their conversations with all messages; their memories in any state, and memories without an owner that were
learnt only in those conversations; recalls made for them; golden queries asked on their behalf; jobs about them and
their conversations. What stays is an audit entry with ids, counts and a fingerprint that does not reveal the owner.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.db import connection, transaction
from django.utils.crypto import salted_hmac
from pydantic import StringConstraints

from accounts.access import Scope
from conversations.models import Conversation
from memories import audit
from memories.deletion import erase, parts_of
from memories.models import AuditEntry
from memories.traces import count_mentions, count_owned, refresh_statistics
from memoryconsole.errors import Conflict, NotAllowed
from memoryconsole.inputs import Input, Text
from memoryconsole.turns import wait_for_turn

FORGOTTEN = "forgotten"


class Owner(Input):
    owner: Annotated[Text, StringConstraints(min_length=1, max_length=200)]


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there is of somebody, by kind."""

    memories: int
    versions: int
    chunks: int
    embeddings: int
    attachments: int
    conversations: int
    messages: int
    recalls: int
    golden: int
    jobs: int

    @property
    def is_nothing(self) -> bool:
        return not any(asdict(self).values())


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was deleted, how many rows of the owner are left (none), and how many other rows mention the owner's id."""

    counts: Counts
    left: int
    mentioned: dict[str, int] = field(default_factory=dict)


def preview(scope: Scope, owner: str) -> Counts:
    """Count what `forget` would delete."""
    require_reach(scope)
    return _counts(scope, owner, *_rows_of(scope, owner))


def forget(scope: Scope, owner: str, *, expected: dict[str, int] | None = None) -> Forgotten:
    """Delete everything of the owner, or nothing if the numbers differ from `expected`, which a caller may have seen.

    Forgetting somebody again is no error and deletes nothing.
    """
    scope.require_write()
    require_reach(scope)
    with transaction.atomic():
        # After the batch that is being imported: what it brings is deleted too, and the next one is told.
        wait_for_turn(f"import {scope.instance.id}")
        conversations, memories = _rows_of(scope, owner, lock=True)
        counts = _counts(scope, owner, conversations, memories)
        _check(counts, expected or {})
        _unlink(scope, owner, conversations)
        erase(scope, memories)
        _unname(scope, owner)
        Conversation.objects.filter(instance=scope.instance, id__in=conversations).delete()
        if not counts.is_nothing:
            audit.record(scope, FORGOTTEN, memories, owner=fingerprint(scope, owner), **asdict(counts))
    if not counts.is_nothing:
        refresh_statistics()
    return Forgotten(counts, sum(count_owned(scope, owner).values()), count_mentions(scope, owner))


def forgotten_at(scope: Scope, owner: str) -> datetime | None:
    """When this owner was last forgotten, found by the fingerprint."""
    rows = AuditEntry.objects.filter(instance=scope.instance, action=FORGOTTEN)
    last = rows.filter(detail__owner=fingerprint(scope, owner)).order_by("-id").first()
    return last.created_at if last else None


def forgotten_since(scope: Scope, moment: datetime) -> frozenset[str]:
    """The fingerprints of everybody who was forgotten since then."""
    rows = AuditEntry.objects.filter(instance=scope.instance, action=FORGOTTEN, created_at__gte=moment)
    return frozenset(rows.values_list("detail__owner", flat=True))


def fingerprint(scope: Scope, owner: str) -> str:
    """A keyed hash, so that nobody can find the owner by hashing guesses."""
    return salted_hmac(f"forgotten in {scope.instance.id}", owner, algorithm="sha256").hexdigest()[:32]


def require_reach(scope: Scope) -> None:
    """Forgetting includes private memories and all conversations, so among console users only superadmins may."""
    if scope.actor.kind == "user" and not scope.actor.is_superadmin:
        raise NotAllowed("Only a superadmin may forget a person.")


# The owner's memories, and those without an owner whose only sources are this owner's conversations.
MEMORIES = """
SELECT id FROM memories_memory m
WHERE instance_id = %(instance)s AND (owner = %(owner)s OR owner = '' AND (
    source_conversation_id = ANY(%(conversations)s::uuid[])
    OR source_conversation_id IS NULL AND source_message_ids <> '{{}}'
) AND NOT EXISTS (
    SELECT FROM unnest(source_message_ids) AS source (id)
    WHERE NOT EXISTS (SELECT FROM conversations_message o WHERE o.instance_id = %(instance)s AND o.id = source.id
                                                            AND o.conversation_id = ANY(%(conversations)s::uuid[]))
))
ORDER BY id {lock}
"""


def _rows_of(scope: Scope, owner: str, *, lock: bool = False) -> tuple[list[UUID], list[UUID]]:
    """The conversations and memories to delete."""
    rows = Conversation.objects.filter(instance=scope.instance, owner=owner).order_by("id")
    conversations = list((rows.select_for_update() if lock else rows).values_list("id", flat=True))
    with connection.cursor() as cursor:
        cursor.execute(MEMORIES.format(lock="FOR UPDATE" if lock else ""), _parameters(scope, owner, conversations))
        return conversations, [id for (id,) in cursor.fetchall()]


RECALLS = """
FROM memories_recall
WHERE instance_id = %(instance)s AND (owner = %(owner)s OR conversation_id = ANY(%(conversations)s::uuid[]))
"""
# Their marks are deleted by a foreign key.
GOLDEN = "FROM memories_goldenquery WHERE instance_id = %(instance)s AND owner = %(owner)s"
# Jobs that name the owner or one of the conversations. A job that is running now will find nothing left to do.
NAMES = """EXISTS (
    SELECT FROM jsonb_path_query({column}, '$.**') AS part
    WHERE jsonb_typeof(part) = 'string' AND part #>> '{{}}' = ANY(%(names)s)
)"""
JOBS = f"""
FROM memories_job
WHERE instance_id = %(instance)s
  AND (conversation_id = ANY(%(conversations)s::uuid[]) OR {NAMES.format(column="payload")})
"""
QUEUED = f"""
FROM procrastinate_jobs
WHERE args ->> 'instance_id' = %(instance)s::text AND status <> 'doing' AND {NAMES.format(column="args")}
"""
COUNTS = f"""
SELECT (SELECT count(*) FROM conversations_message
        WHERE instance_id = %(instance)s AND conversation_id = ANY(%(conversations)s::uuid[])),
       (SELECT count(*) {RECALLS}),
       (SELECT count(*) {GOLDEN}),
       (SELECT count(*) {JOBS}) + (SELECT count(*) {QUEUED})
"""


def _counts(scope: Scope, owner: str, conversations: Sequence[UUID], memories: Sequence[UUID]) -> Counts:
    parts = parts_of(scope, memories)
    with connection.cursor() as cursor:
        cursor.execute(COUNTS, _parameters(scope, owner, conversations))
        messages, recalls, golden, jobs = cursor.fetchone()
    return Counts(
        memories=parts.deleted,
        versions=parts.versions,
        chunks=parts.chunks,
        embeddings=parts.embeddings,
        attachments=parts.attachments,
        conversations=len(conversations),
        messages=messages,
        recalls=recalls,
        golden=golden,
        jobs=jobs,
    )


# Messages of the owner, which may be sources of other people's memories.
MESSAGES = """
SELECT id FROM conversations_message
WHERE instance_id = %(instance)s AND conversation_id = ANY(%(conversations)s::uuid[])
"""
UNLINK = f"""
WITH theirs AS MATERIALIZED ({MESSAGES})
UPDATE memories_memory m
SET source_message_ids = ARRAY(SELECT id FROM unnest(m.source_message_ids) WITH ORDINALITY AS source (id, place)
                               WHERE id NOT IN (SELECT id FROM theirs) ORDER BY place)
WHERE m.instance_id = %(instance)s AND m.owner <> %(owner)s AND m.source_message_ids <> '{{}}'
  AND EXISTS (SELECT FROM unnest(m.source_message_ids) AS source (id) JOIN theirs USING (id))
"""
UNLINK_VERSIONS = f"""
UPDATE memories_memoryversion SET source_message_id = NULL
WHERE instance_id = %(instance)s AND source_message_id IN ({MESSAGES})
"""
UNNAME = """
UPDATE memories_chunk SET who = ''
WHERE instance_id = %(instance)s AND who = %(owner)s AND NOT starts_with(lower(content), lower(%(owner)s))
"""


def _unlink(scope: Scope, owner: str, conversations: Sequence[UUID]) -> None:
    """Before the conversations and memories are deleted: remove everything that refers to the owner or to them."""
    parameters = _parameters(scope, owner, conversations)
    with connection.cursor() as cursor:
        for what in (RECALLS, GOLDEN, JOBS, QUEUED):
            cursor.execute(f"DELETE {what}", parameters)
        for statement in (UNLINK, UNLINK_VERSIONS):
            cursor.execute(statement, parameters)


def _unname(scope: Scope, owner: str) -> None:
    """Remove the owner's name from chunks of memories that have another owner now."""
    with connection.cursor() as cursor:
        cursor.execute(UNNAME, _parameters(scope, owner, []))


def _parameters(scope: Scope, owner: str, conversations: Sequence[UUID]) -> dict[str, Any]:
    names = [owner, *map(str, conversations)]
    return {"instance": scope.instance.id, "owner": owner, "conversations": list(conversations), "names": names}


def _check(counts: Counts, expected: dict[str, int]) -> None:
    found = asdict(counts)
    if any(found[name] != n for name, n in expected.items()):
        raise Conflict(
            "There is another number of things by now than expected. Nothing was forgotten.",
            code="stale_expectation",
            extra={"found": found},
        )
