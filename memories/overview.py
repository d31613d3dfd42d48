"""The Overview page: what needs attention, what is remembered, and how it is used.

Every number counts the same rows as the list it links to. Rows that have to be counted one by one are counted up to a
limit, so that the page takes as long in a large instance as in a small one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from accounts.access import Scope
from conversations.store import conversations_of
from memories.activity import LOOKED_BACK, JobFilters, jobs
from memories.audit import note_private_reads
from memories.days import Day, last_days
from memories.embedding.embedder import model_of
from memories.filters import IS_NOT_EMBEDDED, Filters, matching, readable, spelt_out
from memories.listing import Totals, count, count_by_day
from memories.models import Attachment, Job, Memory
from memories.procedures.store import procedures_of
from memories.recall.log import Outcomes, recalls_by_day, recent_outcomes
from memories.review.duplicates import open_pairs
from memories.review.inbox import waiting
from memories.vocabulary import EmbeddingState
from memoryconsole.ids import first_id_at

DAYS = 30
SOON = timedelta(days=7)
RECENT = timedelta(days=7)
# Vectors are usually made within seconds; one that is pending for longer is late.
LATE = timedelta(hours=1)
COUNTED_UP_TO = 10_000
# The numbers of things to do are only counted up to this.
MANY = 1_000
SHOWN = 5
IS_RECALLED = spelt_out("access_count > 0")


@dataclass(frozen=True, slots=True)
class Needs:
    """What somebody should look at, and the memories that expire soonest."""

    waiting: int
    duplicates: int
    conflicts: int
    failed_jobs: int
    not_embeddable: int
    late: int
    expiring: int
    soonest: list[Memory]


@dataclass(frozen=True, slots=True)
class Remembered:
    totals: Totals
    pinned: int
    added: list[Day]
    without_vector: int | None
    """None if the instance has no embedder and no vectors."""


@dataclass(frozen=True, slots=True)
class Used:
    recalls: list[Day]
    outcomes: Outcomes
    most: list[Memory]
    recalled: int
    """How many were recalled at least once."""


@dataclass(frozen=True, slots=True)
class Overview:
    needs: Needs
    remembered: Remembered
    used: Used
    conversations: int
    procedures: int
    attachments: int

    @property
    def is_empty(self) -> bool:
        recalls = sum(day.n for day in self.used.recalls)
        held = self.remembered.totals.all + self.needs.waiting + self.conversations + self.procedures
        return not held and not recalls


def overview_of(scope: Scope) -> Overview:
    now, days = timezone.now(), last_days(DAYS)
    n = _sizes(_counted_rows(scope, now))
    vectors = _vectors(scope, now)
    found = Overview(
        needs=_needs(scope, n, vectors, now),
        remembered=Remembered(
            totals=count(scope, Filters()),
            pinned=n["pinned"],
            added=count_by_day(scope, days),
            without_vector=vectors["missing"],
        ),
        used=Used(
            recalls=recalls_by_day(scope, days),
            outcomes=recent_outcomes(scope, RECENT, COUNTED_UP_TO),
            most=list(_recalled(scope).order_by("-access_count", "-id")[:SHOWN]),
            recalled=n["recalled"],
        ),
        conversations=n["conversations"],
        procedures=n["procedures"],
        attachments=n["attachments"],
    )
    note_private_reads(scope, [*found.needs.soonest, *found.used.most])
    return found


def _needs(scope: Scope, n: Mapping[str, int], vectors: Mapping[str, Any], now: datetime) -> Needs:
    return Needs(
        waiting=n["waiting"],
        duplicates=n["duplicates"],
        conflicts=n["conflicts"],
        failed_jobs=n["failed_jobs"],
        not_embeddable=vectors["failed"],
        # Without an embedder all of them are late, and a warning already says that there is none.
        late=vectors["late"] if model_of(scope.instance) else 0,
        expiring=n["expiring"],
        soonest=list(_expiring(scope, now).order_by("expires_at", "id")[:SHOWN]) if n["expiring"] else [],
    )


def _recalled(scope: Scope) -> QuerySet[Memory]:
    return matching(scope, Filters()).filter(IS_RECALLED)


def _expiring(scope: Scope, now: datetime) -> QuerySet[Memory]:
    return matching(scope, Filters()).filter(expires_at__lt=now + SOON)


def _counted_rows(scope: Scope, now: datetime) -> dict[str, QuerySet[Any]]:
    failed = jobs(scope, JobFilters(state=Job.State.FAILED)).filter(id__gte=first_id_at(now - LOOKED_BACK))
    # Looked up one by one, for the same reason as in `open_pairs`.
    is_readable = Subquery(readable(scope).filter(id=OuterRef("memory_id")).values("id"))
    files = Attachment.objects.filter(instance=scope.instance, memory_id=is_readable)
    return {
        "waiting": waiting(scope)[: MANY + 1],
        "duplicates": open_pairs(scope, "duplicate")[: MANY + 1],
        "conflicts": open_pairs(scope, "conflict")[: MANY + 1],
        "failed_jobs": failed[: MANY + 1],
        "expiring": _expiring(scope, now)[: MANY + 1],
        "pinned": matching(scope, Filters(pinned=True))[: COUNTED_UP_TO + 1],
        "recalled": _recalled(scope)[: COUNTED_UP_TO + 1],
        "attachments": files[: COUNTED_UP_TO + 1],
        "conversations": conversations_of(scope),
        "procedures": procedures_of(scope),
    }


def _sizes(queries: Mapping[str, QuerySet[Any]]) -> dict[str, int]:
    """Count the rows of all these queries by one statement."""
    counts: list[str] = []
    parameters: list[Any] = []
    for name, rows in queries.items():
        sql, values = rows.values("id").query.sql_with_params()
        counts.append(f"(SELECT count(*) FROM ({sql}) AS {name})")
        parameters += values
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(counts)}", parameters)
        return dict(zip(queries, cursor.fetchone(), strict=True))


def _vectors(scope: Scope, now: datetime) -> dict[str, Any]:
    """Count the memories without a vector, oldest first: failed ones are counted even if many new ones are pending."""
    if not model_of(scope.instance) and not scope.instance.embedding_model:
        return {"missing": None, "failed": 0, "late": 0}
    rows = matching(scope, Filters()).filter(IS_NOT_EMBEDDED).order_by("id")
    return rows[: COUNTED_UP_TO + 1].aggregate(
        missing=Count("id"),
        failed=Count("id", filter=Q(embedding=EmbeddingState.FAILED)),
        late=Count("id", filter=Q(embedding=EmbeddingState.PENDING, updated_at__lt=now - LATE)),
    )
