"""Which memories: the filters of the list, of search, of bulk actions and of exports, under their public names."""

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
    """A variable that nobody has set must not mean "any", least of all where something is deleted."""
    if value is None or value == [] or (isinstance(value, str) and not value.strip()):
        raise ValueError("This may not be empty. Leave the filter out to mean any.")
    return value


def _several(value: object) -> object:
    return [value] if isinstance(value, str) else value


# For pages, whose forms send every field.
Unset = BeforeValidator(_empty_is_none)
Given = BeforeValidator(_not_empty)
Label = Annotated[Text, StringConstraints(max_length=32)]


class Filters(Input):
    """Every filter narrows; leaving one out means any. What else a query asks for is no filter."""

    model_config = ConfigDict(json_schema_extra=never_null())

    category: Annotated[CategoryWord | None, Given] = None
    role: Annotated[RoleWord | None, Given] = None
    tag: Annotated[
        list[Annotated[Tag, Given]], BeforeValidator(_several), Given, Field(min_length=1, max_length=10)
    ] = []
    source: Annotated[Label | None, Given] = None
    owner: Annotated[Name | None, Given] = None
    visibility: Annotated[Visibility | None, Given] = None
    pinned: Annotated[bool | None, Given] = None
    min_importance: Annotated[Importance | None, Given] = None
    created_after: Annotated[Moment | None, Given] = None
    created_before: Annotated[Moment | None, Given] = None
    occurred_after: Annotated[Moment | None, Given] = None
    occurred_before: Annotated[Moment | None, Given] = None
    conversation_id: Annotated[UUID | None, Given] = None
    embedding: Annotated[EmbeddingState | None, Given] = None
    include_superseded: Annotated[bool | None, Given] = None

    @model_validator(mode="before")
    @classmethod
    def _other_words(cls, data: Any) -> Any:
        return with_role_of_category(data)

    def narrowing(self) -> dict[str, Any]:
        """The filters that are set, by public name, as they are written in a query string."""
        given = self.model_fields_set & Filters.model_fields.keys()
        shown = self.model_dump(by_alias=True, mode="json", include=given, exclude_defaults=True) if given else {}
        return {name: value for name, value in shown.items() if value not in (None, [], "")}


def readable(scope: Scope) -> QuerySet[Memory]:
    """Everything of the instance this actor may read by id: also what is superseded or waits for review."""
    return unexpired(once_readable(scope))


def once_readable(scope: Scope) -> QuerySet[Memory]:
    """Also what has expired and is not purged yet, to say so of it; nobody reads its text any more."""
    return _once_readable(scope.instance.id, scope.private_memories_of)


def _once_readable(instance: Any, owner: Any) -> QuerySet[Memory]:
    rows = Memory.objects.filter(instance_id=instance)
    return rows if owner is None else rows.filter(~Q(visibility=Visibility.PRIVATE) | Q(owner=owner))


def may_read(scope: Scope, memory: Memory) -> bool:
    """The same of one that has not expired, without asking the database."""
    owner = scope.private_memories_of
    return memory.visibility != Visibility.PRIVATE or owner is None or memory.owner == owner


def unexpired(rows: QuerySet[Memory]) -> QuerySet[Memory]:
    return rows.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=Now()))


def matching(scope: Scope, filters: Filters) -> QuerySet[Memory]:
    """The memories the filters leave, in no particular order."""
    asked = _lookups(filters)
    return _matching(scope.instance.id, scope.private_memories_of, asked, bool(filters.include_superseded))


def _matching(instance: Any, owner: Any, asked: Mapping[str, Any], superseded: bool) -> QuerySet[Memory]:
    shown = LISTED | Q(status=Status.SUPERSEDED) if superseded else LISTED
    return unexpired(_once_readable(instance, owner)).filter(shown).filter(_conditions(asked))


def as_sql(rows: QuerySet[Memory, Any], parameters: dict[str, Any], *, prefix: str = "filter") -> str:
    """These rows as a part of a larger statement, so that all reads agree; values join its parameters."""
    sql, values = rows.query.sql_with_params()
    for n, value in enumerate(values):
        sql = sql.replace("%s", f"%({prefix}{n})s", 1)
        parameters[f"{prefix}{n}"] = value
    return sql


def matching_sql(scope: Scope, filters: Filters, parameters: dict[str, Any]) -> str:
    """What `matching` leaves, for a statement that has `instance` and `reader` among its parameters.

    Django takes longer to write this than PostgreSQL to answer, so it is written once for the same kinds of filters.
    """
    asked = _lookups(filters)
    kinds = tuple((name, value if name in SPELT_OUT else None) for name, value in asked.items())
    sql, constants = _composed(kinds, scope.private_memories_of is not None, bool(filters.include_superseded))
    parameters |= constants | {f"filter_{name}": value for name, value in asked.items()}
    return sql


@lru_cache(maxsize=512)
def _composed(kinds: tuple[tuple[str, Any], ...], has_reader: bool, superseded: bool) -> tuple[str, dict[str, Any]]:
    asked = {name: Parameter(f"filter_{name}") if value is None else value for name, value in kinds}
    rows = _matching(Parameter("instance"), Parameter("reader") if has_reader else None, asked, superseded)
    constants: dict[str, Any] = {}
    return as_sql(rows.order_by().values("id"), constants), constants


class Parameter(Expression):
    """A value that the statement is given by this name when it is run."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[str | int, ...]]:
        return f"%({self.name})s", ()


def spelt_out(condition: str) -> RawSQL:
    """The condition of a partial index as a literal: with a parameter a generic plan could not use the index."""
    return RawSQL(condition, (), output_field=BooleanField())  # noqa: S611


HAS_TAGS = spelt_out("NOT tags = '{}'::character varying(64)[]")
HAS_OWNER = spelt_out("NOT owner = ''")
IS_PRIVATE = spelt_out("visibility = 'private'")
IS_NOT_EMBEDDED = spelt_out("NOT embedding = 'ready'")
# Values that decide which of them hold.
SPELT_OUT = {"visibility", "pinned", "embedding"}


def conditions(filters: Filters) -> Q:
    return _conditions(_lookups(filters))


def _lookups(filters: Filters) -> dict[str, Any]:
    """The filters that are set, as Django asks for them."""
    after, before = filters.created_after, filters.created_before
    asked: dict[str, Any] = {
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
        # An import may bring older memories than ids can tell: they all have the first millisecond.
        "created_at__gte": after if after and after <= EPOCH else None,
        "created_at__lt": before if before and before <= EPOCH else None,
        "occurred_at__gte": filters.occurred_after,
        "occurred_at__lt": filters.occurred_before,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _conditions(asked: Mapping[str, Any]) -> Q:
    condition = Q(**asked)
    if "owner" in asked:
        condition &= Q(HAS_OWNER)
    if "tags__contains" in asked:
        condition &= Q(HAS_TAGS)
    if asked.get("visibility") == Visibility.PRIVATE:
        condition &= Q(IS_PRIVATE)
    if asked.get("embedding") in (EmbeddingState.PENDING, EmbeddingState.FAILED):
        condition &= Q(IS_NOT_EMBEDDED)
    return condition
