"""Filters for memories: the same ones for lists, search, bulk actions and exports, under their public names."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any
from uuid import UUID

from django.db.models import BooleanField, Expression, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from accounts.access import Scope
from memories.draft import CategoryWord, Importance, Name, RoleWord, Tag, with_role_of_category
from memories.models import LISTED, Memory
from memories.vocabulary import EmbeddingState, Status, Visibility
from memoryconsole.ids import EPOCH, MILLISECOND, first_id_at
from memoryconsole.inputs import Input, Moment, Text, never_null


def _empty_is_none(value: object) -> object:
    return None if value == "" else value


def _not_empty(value: object) -> object:
    """Refuse an empty value: an unset variable in somebody's script must not mean "any", least of all in a delete."""
    if value is None or value == [] or (isinstance(value, str) and not value.strip()):
        raise ValueError("This may not be empty. Leave the filter out to mean any.")
    return value


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


# For forms, which send every field, also the empty ones.
EmptyIsNone = BeforeValidator(_empty_is_none)
NotEmpty = BeforeValidator(_not_empty)
Label = Annotated[Text, StringConstraints(max_length=32)]


class Filters(Input):
    """Every filter narrows the result; leaving one out means any."""

    model_config = ConfigDict(json_schema_extra=never_null())

    category: Annotated[CategoryWord | None, NotEmpty] = None
    role: Annotated[RoleWord | None, NotEmpty] = None
    tag: Annotated[
        list[Annotated[Tag, NotEmpty]], BeforeValidator(_as_list), NotEmpty, Field(min_length=1, max_length=10)
    ] = []
    source: Annotated[Label | None, NotEmpty] = None
    owner: Annotated[Name | None, NotEmpty] = None
    visibility: Annotated[Visibility | None, NotEmpty] = None
    pinned: Annotated[bool | None, NotEmpty] = None
    min_importance: Annotated[Importance | None, NotEmpty] = None
    created_after: Annotated[Moment | None, NotEmpty] = None
    created_before: Annotated[Moment | None, NotEmpty] = None
    occurred_after: Annotated[Moment | None, NotEmpty] = None
    occurred_before: Annotated[Moment | None, NotEmpty] = None
    conversation_id: Annotated[UUID | None, NotEmpty] = None
    embedding: Annotated[EmbeddingState | None, NotEmpty] = None
    include_superseded: Annotated[bool | None, NotEmpty] = None

    @model_validator(mode="before")
    @classmethod
    def _resolve_aliases(cls, data: Any) -> Any:
        return with_role_of_category(data)

    def narrowing(self) -> dict[str, Any]:
        """The filters that are set, by public name, as they are written in a query string."""
        sent = self.model_fields_set & Filters.model_fields.keys()
        values = self.model_dump(by_alias=True, mode="json", include=sent, exclude_defaults=True) if sent else {}
        return {name: value for name, value in values.items() if value not in (None, [], "")}


def readable(scope: Scope) -> QuerySet[Memory]:
    """All memories of the instance that this actor may read by id, including superseded and unreviewed ones."""
    return unexpired(once_readable(scope))


def once_readable(scope: Scope) -> QuerySet[Memory]:
    """The same with expired memories that are not purged yet. Only to say that they expired: never show their text."""
    return _once_readable(scope.instance.id, scope.private_memories_of)


def _once_readable(instance: Any, owner: Any) -> QuerySet[Memory]:
    rows = Memory.objects.filter(instance_id=instance)
    return rows if owner is None else rows.filter(~Q(visibility=Visibility.PRIVATE) | Q(owner=owner))


def may_read(scope: Scope, memory: Memory) -> bool:
    """Whether `readable` has this memory, without a query; assumes that it has not expired."""
    owner = scope.private_memories_of
    return memory.visibility != Visibility.PRIVATE or owner is None or memory.owner == owner


def unexpired(rows: QuerySet[Memory]) -> QuerySet[Memory]:
    return rows.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=Now()))


def matching(scope: Scope, filters: Filters) -> QuerySet[Memory]:
    """The memories that match the filters, in no particular order."""
    lookups = _lookups(filters)
    return _matching(scope.instance.id, scope.private_memories_of, lookups, bool(filters.include_superseded))


def _matching(instance: Any, owner: Any, lookups: Mapping[str, Any], superseded: bool) -> QuerySet[Memory]:
    visible = LISTED | Q(status=Status.SUPERSEDED) if superseded else LISTED
    return unexpired(_once_readable(instance, owner)).filter(visible).filter(_conditions(lookups))


def as_sql(rows: QuerySet[Memory, Any], parameters: dict[str, Any], *, prefix: str = "filter") -> str:
    """The queryset as SQL for a larger statement; adds its values to that statement's named parameters."""
    sql, values = rows.query.sql_with_params()
    for n, value in enumerate(values):
        sql = sql.replace("%s", f"%({prefix}{n})s", 1)
        parameters[f"{prefix}{n}"] = value
    return sql


def matching_sql(scope: Scope, filters: Filters, parameters: dict[str, Any]) -> str:
    """`matching` as SQL, for a statement that has `instance` and `reader` among its parameters.

    Django takes longer to compile this than PostgreSQL to run it, so the SQL is cached for each combination of filters.
    """
    lookups = _lookups(filters)
    shape = tuple((name, value if name in SPELT_OUT else None) for name, value in lookups.items())
    sql, constants = _compiled(shape, scope.private_memories_of is not None, bool(filters.include_superseded))
    parameters |= constants | {f"filter_{name}": value for name, value in lookups.items()}
    return sql


@lru_cache(maxsize=512)
def _compiled(shape: tuple[tuple[str, Any], ...], has_reader: bool, superseded: bool) -> tuple[str, dict[str, Any]]:
    lookups = {name: Parameter(f"filter_{name}") if value is None else value for name, value in shape}
    rows = _matching(Parameter("instance"), Parameter("reader") if has_reader else None, lookups, superseded)
    constants: dict[str, Any] = {}
    return as_sql(rows.order_by().values("id"), constants), constants


class Parameter(Expression):
    """A named parameter, whose value is passed when the statement is executed."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[str | int, ...]]:
        return f"%({self.name})s", ()


def spelt_out(condition: str) -> RawSQL:
    """The condition of a partial index as literal SQL, because a generic plan cannot match it with parameters."""
    return RawSQL(condition, (), output_field=BooleanField())  # noqa: S611


HAS_TAGS = spelt_out("NOT tags = '{}'::character varying(64)[]")
HAS_OWNER = spelt_out("NOT owner = ''")
IS_PRIVATE = spelt_out("visibility = 'private'")
IS_NOT_EMBEDDED = spelt_out("NOT embedding = 'ready'")
# Filters whose value decides which of these conditions apply, so the value is part of the cached SQL.
SPELT_OUT = {"visibility", "pinned", "embedding"}


def conditions(filters: Filters) -> Q:
    return _conditions(_lookups(filters))


def _lookups(filters: Filters) -> dict[str, Any]:
    """The filters that are set, as Django lookups."""
    after, before = filters.created_after, filters.created_before
    lookups: dict[str, Any] = {
        "category": filters.category and str(filters.category),
        "role": filters.role and str(filters.role),
        "source": filters.source,
        "owner": filters.owner,
        "visibility": filters.visibility,
        "pinned": filters.pinned,
        "embedding": filters.embedding,
        "tags__contains": filters.tag or None,
        "importance__gte": filters.min_importance,
        "source_conversation_id": filters.conversation_id,
        # Ids sort by creation time, so these two ranges are served by the primary key.
        "id__gte": first_id_at(after) if after else None,
        "id__lt": first_id_at(max(before, EPOCH + MILLISECOND)) if before else None,
        # Imported memories may be older than an id can express; their ids all have the first millisecond.
        "created_at__gte": after if after and after <= EPOCH else None,
        "created_at__lt": before if before and before <= EPOCH else None,
        "occurred_at__gte": filters.occurred_after,
        "occurred_at__lt": filters.occurred_before,
    }
    return {name: value for name, value in lookups.items() if value is not None}


def _conditions(lookups: Mapping[str, Any]) -> Q:
    condition = Q(**lookups)
    if "owner" in lookups:
        condition &= Q(HAS_OWNER)
    if "tags__contains" in lookups:
        condition &= Q(HAS_TAGS)
    if lookups.get("visibility") == Visibility.PRIVATE:
        condition &= Q(IS_PRIVATE)
    if lookups.get("embedding") in (EmbeddingState.PENDING, EmbeddingState.FAILED):
        condition &= Q(IS_NOT_EMBEDDED)
    return condition
