"""Memories that other instances of the team or the organisation share with this one.

They are found by search and recall only. They are not in this instance's lists, counts and exports, and they cannot be
changed here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.access import Scope
from instances.models import Instance, Team
from memories.embedding.embedder import search_model_of
from memories.filters import Filters, as_sql, conditions, spelt_out, unexpired
from memories.models import LISTED, SHARED, Memory
from memories.search.sharing_sql import shared_statement
from memories.store import find_memory
from memories.vocabulary import Visibility
from memoryconsole.errors import NotFound
from memoryconsole.ids import parse_id
from memoryconsole.reading import Composed, row_of

# If more memories are shared, only the newest are searched.
MOST = 5_000
# The least similarity of a memory that contains no word of the query.
NEAR = 0.3
IS_SHARED = spelt_out("visibility IN ('team', 'org')")


@dataclass(frozen=True, slots=True)
class SharedHit:
    memory: Memory
    origin: Instance
    similarity: float | None
    keyword_score: float | None
    content: str | None
    matched: list[str]


def origins(scope: Scope) -> dict[UUID, Instance]:
    """The other instances that share something this scope may read, by id."""
    if not scope.reads_team and not scope.reads_org:
        return {}
    found = _others_that_share(scope.reads_team, scope.reads_org).all(scope.instance.team_id, scope.instance.id)
    return {each.id: each for each in found}


@cache
def _others_that_share(reads_team: bool, reads_org: bool) -> Composed[Instance]:
    def others(team: UUID, own: UUID) -> QuerySet[Instance]:
        within = Q(team_id=team) if reads_team else Q()
        if reads_org:
            within |= Q(team__organisation__in=Team.objects.filter(id=team).values("organisation_id"))
        share = Exists(Memory.objects.filter(IS_SHARED, instance=OuterRef("pk")))
        return Instance.objects.filter(within, share).exclude(id=own)

    return Composed(others, UUID, UUID)


def shared_with(scope: Scope, sources: Iterable[Instance], filters: Filters) -> QuerySet[Memory]:
    """The shared memories of these instances that the scope may read and the filters leave."""
    team = [each.id for each in sources if scope.reads_team and each.team_id == scope.instance.team_id]
    everywhere = [each.id for each in sources if scope.reads_org]
    readable = Q(instance__in=team, visibility__in=SHARED) | Q(instance__in=everywhere, visibility=Visibility.ORG)
    return unexpired(Memory.objects.filter(readable, IS_SHARED, LISTED)).filter(conditions(filters))


def find_shared(scope: Scope, raw_id: object) -> tuple[Memory, Instance]:
    """A memory that another instance shares with this one, and that instance."""
    id, sources = parse_id(raw_id), origins(scope)
    memory = shared_with(scope, sources.values(), Filters()).filter(id=id).first() if id and sources else None
    if memory is None:
        raise NotFound("There is no such memory in this instance.")
    return memory, sources[memory.instance_id]


def find_own_or_shared(scope: Scope, raw_id: object) -> tuple[Memory, Instance]:
    try:
        return find_memory(scope, raw_id), scope.instance
    except NotFound:
        return find_shared(scope, raw_id)


def search_shared(scope: Scope, filters: Filters, parameters: dict[str, Any]) -> list[SharedHit]:
    """The shared memories that answer the query in `parameters`, those of the search statement."""
    sources = origins(scope)
    if not sources:
        return []
    allowed = shared_with(scope, sources.values(), filters).order_by("-id").values("instance_id", "id")[:MOST]
    model = search_model_of(scope.instance)
    same = [each for each in sources.values() if each.embedding_model == model]
    named = {
        **parameters,
        "sources": [each.id for each in same],
        "generations": [each.embedding_generation for each in same],
        "threshold": NEAR,
    }
    sql = shared_statement(as_sql(allowed, named, prefix="shared"))
    with connection.cursor() as cursor:
        cursor.execute(sql, named)
        rows = cursor.fetchall()
    return [_hit(row, sources) for row in rows]


def _hit(row: Sequence[Any], sources: dict[UUID, Instance]) -> SharedHit:
    similarity, score, content, matched, *columns = row
    memory = row_of(Memory, columns)
    return SharedHit(memory, sources[memory.instance_id], similarity, score, content, matched or [])
