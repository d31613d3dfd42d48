"""The log of recalls: the question, ids and numbers, but never the text of a memory.

So nothing has to be removed from it when a memory is deleted. Texts are read from the memories and their versions.
"""

import json
import logging
from dataclasses import dataclass
from datetime import date, timedelta
from uuid import UUID

from django.db import DatabaseError, connection
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from accounts.access import Scope
from memories.days import EACH_DAY, Day, by_day
from memories.models import Recall
from memories.recall.account import Account, account_of, packed
from memoryconsole.finding import find_among
from memoryconsole.ids import first_id_at, uuid7
from memoryconsole.scrub import scrub

logger = logging.getLogger(__name__)

MAX_QUERY = 10_000

# With synchronous_commit off, recall does not wait for the disk; a crash may lose the last entries. It is one statement
# to save round trips.
RECORD = """
WITH relaxed AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
logged AS (
    INSERT INTO memories_recall (instance_id, id, conversation_id, owner, query, search_mode, tokens, memory_ids,
                                 explanation, created_at)
    SELECT %(instance)s::uuid, %(id)s::uuid, %(conversation)s::uuid, %(owner)s, %(query)s, %(mode)s, %(tokens)s::int,
           %(ids)s::uuid[], %(explanation)s::text::jsonb, %(now)s::timestamptz
    FROM relaxed WHERE %(keeps)s::boolean
)
INSERT INTO memories_recalluse (instance_id, id, memory_ids, created_at)
SELECT %(instance)s::uuid, %(id)s::uuid, %(ids)s::uuid[], %(now)s::timestamptz
FROM relaxed WHERE cardinality(%(ids)s::uuid[]) > 0
"""


def record(scope: Scope, account: Account, conversation_id: UUID | None) -> UUID | None:
    """Log the recall and the use of its memories. Return None if the instance keeps no log or it cannot be written."""
    keeps = scope.instance.recall_log_days > 0
    id = uuid7()
    parameters = {
        "instance": scope.instance.id,
        "id": id,
        "conversation": conversation_id,
        "owner": account.user_id,
        "query": scrub(account.query[:MAX_QUERY])[0] if keeps else "",
        "mode": account.mode,
        "tokens": account.tokens,
        "ids": [line.memory_id for line in account.given],
        "explanation": json.dumps(packed(account), separators=(",", ":")) if keeps else "{}",
        "now": account.at,
        "keeps": keeps,
    }
    try:
        with connection.cursor() as cursor:
            cursor.execute(RECORD, parameters)
    except DatabaseError as error:
        if connection.in_atomic_block:
            raise
        # The answer is more important than its log.
        logger.warning("A recall could not be logged: %s", type(error).__name__)
        return None
    return id if keeps else None


def recalls_of(
    scope: Scope, *, user_id: str = "", conversation_id: UUID | None = None, memory_id: UUID | None = None
) -> QuerySet[Recall]:
    """All recalls, or only those for an end user, in a conversation, or that gave a memory."""
    rows = Recall.objects.filter(instance=scope.instance)
    if user_id:
        rows = rows.filter(owner=user_id)
    if conversation_id:
        rows = rows.filter(conversation_id=conversation_id)
    return rows.filter(memory_ids__contains=[memory_id]) if memory_id else rows


def find_recall(scope: Scope, raw_id: object) -> Recall:
    """The only way from an outside id to a recall."""
    return find_among(recalls_of(scope), raw_id, "There is no such recall in this instance's log.")


def account_in(row: Recall) -> Account:
    return account_of(
        row.explanation,
        query=row.query,
        user_id=row.owner,
        mode=row.search_mode,
        tokens=row.tokens,
        at=row.created_at,
    )


def purge_log(scope: Scope) -> int:
    """Delete recalls that are older than the instance keeps them."""
    days = scope.instance.recall_log_days
    return recalls_of(scope).filter(id__lt=first_id_at(timezone.now() - timedelta(days=days))).delete()[0]


def recalls_by_day(scope: Scope, days: list[date]) -> list[Day]:
    return by_day(RECALLS_BY_DAY, days, {"instance": scope.instance.id})


RECALLS_BY_DAY = f"""
SELECT n, (
    SELECT count(*) FROM memories_recall WHERE instance_id = %(instance)s AND id >= day.first AND id < day.next
) FROM {EACH_DAY}
"""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How many of the latest recalls were counted, found nothing, or were answered by words alone."""

    all: int
    found_nothing: int
    without_vectors: int


def recent_outcomes(scope: Scope, since: timedelta, most: int) -> Outcomes:
    """Count at most `most` recalls, because each row is read. A recall without a question cannot find nothing."""
    rows = recalls_of(scope).filter(id__gte=first_id_at(timezone.now() - since)).order_by("-id")
    in_vain = Q(search_mode="recency") & ~Q(query="")
    counted = rows[:most].aggregate(
        all=Count("id"),
        found_nothing=Count("id", filter=in_vain),
        without_vectors=Count("id", filter=Q(search_mode="keyword")),
    )
    return Outcomes(**counted)


# Locks memories in the order of their ids, as bulk changes do, to avoid deadlocks.
FOLD_USES = """
WITH used AS MATERIALIZED (
    DELETE FROM memories_recalluse WHERE instance_id = %(instance)s RETURNING memory_ids, created_at
),
counted AS MATERIALIZED (
    SELECT id, count(*) AS times, max(created_at) AS latest FROM used, unnest(memory_ids) AS id GROUP BY id
),
locked AS MATERIALIZED (
    SELECT m.id FROM memories_memory m
    WHERE m.instance_id = %(instance)s AND m.id IN (SELECT id FROM counted) ORDER BY m.id FOR NO KEY UPDATE
)
UPDATE memories_memory m
SET access_count = m.access_count + c.times, last_accessed_at = greatest(m.last_accessed_at, c.latest)
FROM counted c JOIN locked USING (id)
WHERE m.instance_id = %(instance)s AND m.id = c.id
"""


def fold_uses(instance_id: UUID) -> None:
    """Add the appended uses to the access counts of the memories, and delete them."""
    with connection.cursor() as cursor:
        cursor.execute(FOLD_USES, {"instance": instance_id})
