"""Which memories: the filters of the list, of search, of bulk actions and of exports, under their public names."""

from typing import Annotated, Any
from uuid import UUID

from django.db.models import BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from pydantic import BeforeValidator, Field, StringConstraints

from accounts.access import Scope
from memories.draft import CategoryWord, Importance, Name, RoleWord, Tag
from memories.models import LISTED, Memory
from memories.vocabulary import EmbeddingState, Status, Visibility
from memoryconsole.ids import first_id_at
from memoryconsole.inputs import Input, Moment, Text


def _empty_is_none(value: object) -> object:
    return None if value == "" else value


def _several(value: object) -> object:
    return [value] if isinstance(value, str) else value


Unset = BeforeValidator(_empty_is_none)
Label = Annotated[Text, StringConstraints(max_length=32)]


class Filters(Input):
    """Every filter narrows; leaving one out means any."""

    category: Annotated[CategoryWord | None, Unset] = None
    role: Annotated[RoleWord | None, Unset] = None
    tag: Annotated[list[Tag], BeforeValidator(_several), Field(max_length=10)] = []
    source: Annotated[Label | None, Unset] = None
    owner: Annotated[Name | None, Unset] = None
    visibility: Annotated[Visibility | None, Unset] = None
    pinned: Annotated[bool | None, Unset] = None
    min_importance: Annotated[Importance | None, Unset] = None
    created_after: Annotated[Moment | None, Unset] = None
    created_before: Annotated[Moment | None, Unset] = None
    occurred_after: Annotated[Moment | None, Unset] = None
    occurred_before: Annotated[Moment | None, Unset] = None
    conversation_id: Annotated[UUID | None, Unset] = None
    embedding: Annotated[EmbeddingState | None, Unset] = None
    include_superseded: Annotated[bool | None, Unset] = None

    def narrowing(self) -> dict[str, Any]:
        """The filters that are set, by public name, as they are written in a query string."""
        return {
            name: value
            for name, value in self.model_dump(by_alias=True, mode="json", exclude_defaults=True).items()
            if value not in (None, [], "")
        }


def readable(scope: Scope) -> QuerySet[Memory]:
    """Everything of the instance this actor may read by id: also what is superseded or waits for review."""
    return unexpired(once_readable(scope))


def once_readable(scope: Scope) -> QuerySet[Memory]:
    """Also what has expired and is not purged yet, to say so of it; nobody reads its text any more."""
    rows = Memory.objects.filter(instance=scope.instance)
    owner = scope.private_memories_of
    if owner is not None:
        rows = rows.filter(~Q(visibility=Visibility.PRIVATE) | Q(owner=owner))
    return rows


def may_read(scope: Scope, memory: Memory) -> bool:
    """The same of one that has not expired, without asking the database."""
    owner = scope.private_memories_of
    return memory.visibility != Visibility.PRIVATE or owner is None or memory.owner == owner


def unexpired(rows: QuerySet[Memory]) -> QuerySet[Memory]:
    return rows.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=Now()))


def matching(scope: Scope, filters: Filters) -> QuerySet[Memory]:
    """The memories the filters leave, in no particular order."""
    superseded = Q(status=Status.SUPERSEDED) if filters.include_superseded else Q()
    rows = readable(scope).filter(LISTED | superseded if superseded else LISTED)
    return rows.filter(conditions(filters))


def as_sql(rows: QuerySet[Memory], parameters: dict[str, Any]) -> str:
    """The ids of these rows as a part of a larger statement, so that all reads agree; values join its parameters."""
    sql, values = rows.order_by().values("id").query.sql_with_params()
    for n, value in enumerate(values):
        sql = sql.replace("%s", f"%(filter{n})s", 1)
        parameters[f"filter{n}"] = value
    return sql


# The conditions of partial indexes, spelt as literals: with parameters a generic plan could not use the index.
HAS_TAGS = RawSQL("NOT tags = '{}'::character varying(64)[]", (), output_field=BooleanField())
HAS_OWNER = RawSQL("NOT owner = ''", (), output_field=BooleanField())
IS_PRIVATE = RawSQL("visibility = 'private'", (), output_field=BooleanField())
IS_NOT_EMBEDDED = RawSQL("NOT embedding = 'ready'", (), output_field=BooleanField())


def conditions(filters: Filters) -> Q:
    condition = Q()
    for column in ("category", "role", "source", "owner", "visibility", "pinned", "embedding"):
        value = getattr(filters, column)
        if value is not None:
            condition &= Q(**{column: value})
    if filters.owner:
        condition &= Q(HAS_OWNER)
    if filters.visibility == Visibility.PRIVATE:
        condition &= Q(IS_PRIVATE)
    if filters.embedding in (EmbeddingState.PENDING, EmbeddingState.FAILED):
        condition &= Q(IS_NOT_EMBEDDED)
    if filters.tag:
        condition &= Q(tags__contains=filters.tag) & Q(HAS_TAGS)
    if filters.min_importance is not None:
        condition &= Q(importance__gte=filters.min_importance)
    if filters.conversation_id is not None:
        condition &= Q(source_conversation_id=filters.conversation_id)
    # Ids sort by creation time, so these two ranges are served by the primary key.
    if filters.created_after is not None:
        condition &= Q(id__gte=first_id_at(filters.created_after))
    if filters.created_before is not None:
        condition &= Q(id__lt=first_id_at(filters.created_before))
    if filters.occurred_after is not None:
        condition &= Q(occurred_at__gte=filters.occurred_after)
    if filters.occurred_before is not None:
        condition &= Q(occurred_at__lt=filters.occurred_before)
    return condition
