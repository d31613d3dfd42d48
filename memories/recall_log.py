"""The log of recalls: ids and numbers, and what was asked; never what a memory said.

So nothing has to be removed from it when a memory is deleted, and what was given is shown from the memories themselves.
"""

import json
import logging
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import DatabaseError, connection
from django.utils import timezone

from accounts.access import Scope
from memories.models import Recall
from memoryconsole.errors import NotFound
from memoryconsole.ids import parse_id, uuid7
from memoryconsole.scrub import scrub

if TYPE_CHECKING:
    from memories.recall import Recalled
    from memories.recall_request import RecallRequest
    from memories.selection import Candidate

logger = logging.getLogger(__name__)

MAX_QUERY = 10_000

# Nobody waits for the disk: what a crash takes is the last moment of a log. One statement is one round trip.
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


def record(scope: Scope, request: "RecallRequest", recalled: "Recalled") -> UUID | None:
    """Remember what was given, and that it was used; None when the instance keeps no log, or it cannot be written."""
    keeps = scope.instance.recall_log_days > 0
    id = uuid7()
    named = {
        "instance": scope.instance.id,
        "id": id,
        "conversation": request.conversation_id,
        "owner": request.user_id,
        "query": scrub(recalled.query[:MAX_QUERY])[0] if keeps else "",
        "mode": recalled.mode,
        "tokens": recalled.tokens,
        "ids": [given.memory.id for given in recalled.memories],
        "explanation": json.dumps(_explanation(request, recalled), separators=(",", ":")) if keeps else "{}",
        "now": timezone.now(),
        "keeps": keeps,
    }
    try:
        with connection.cursor() as cursor:
            cursor.execute(RECORD, named)
    except DatabaseError as error:
        if connection.in_atomic_block:
            raise
        # The answer is more important than its log.
        logger.warning("A recall could not be logged: %s", type(error).__name__)
        return None
    return id if keeps else None


def _explanation(request: "RecallRequest", recalled: "Recalled") -> dict[str, Any]:
    settings = recalled.settings
    return {
        "settings": {name: getattr(settings, name) for name in SETTINGS},
        "filter": request.filter.narrowing() if request.filter else {},
        "reason": recalled.reason,
        "warnings": recalled.warnings,
        "given": [
            [given.memory.id.hex, given.why, given.placed.form, given.tokens, *_numbers(given.candidate)]
            for given in recalled.memories
        ],
        "dropped": [
            [dropped.memory.id.hex, dropped.reason, dropped.detail, 0, *_numbers(dropped.candidate)]
            for dropped in recalled.dropped
        ],
    }


SETTINGS = ("limit", "threshold", "token_budget", "half_life_days", "mmr_lambda", "injected_cap")
NUMBERS = (
    "place",
    "vector_rank",
    "similarity",
    "keyword_rank",
    "keyword_score",
    "context_rank",
    "importance",
    "pin",
    "recency",
    "score",
)


def _numbers(candidate: "Candidate | None") -> list[float | int | None]:
    if candidate is None:
        return []
    values = (
        candidate.place,
        candidate.vector_rank,
        candidate.similarity,
        candidate.keyword_rank,
        candidate.keyword_score,
        candidate.context_rank,
        candidate.multipliers.importance,
        candidate.multipliers.pin,
        candidate.multipliers.recency,
        candidate.score,
    )
    return [round(value, 4) if isinstance(value, float) else value for value in values]


def find_recall(scope: Scope, raw_id: object) -> Recall:
    """The only way from an outside id to a recall."""
    id = parse_id(raw_id)
    found = Recall.objects.filter(instance=scope.instance, id=id).first() if id else None
    if found is None:
        raise NotFound("There is no such recall in this instance's log.")
    return found
