"""The input for a new or changed memory: its fields, their limits, and the aliases of categories and roles."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.utils import timezone
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from memories.evidence import check_key, tidy_evidence
from memories.models import MAX_CONTENT, MAX_SUMMARY, MAX_TAG, MAX_TAGS
from memories.vocabulary import Category, Role, Visibility, category_named, role_named
from memoryconsole.inputs import (
    MOST_GROWTH,
    Fraction,
    Input,
    Moment,
    Number,
    Text,
    at_most,
    check_stored,
    never_null,
    no_nul,
    not_null,
    snake_name,
    visible,
)
from memoryconsole.scrub import scrub, scrub_all

MAX_NAME = 200
MAX_REASON = 2_000
MAX_EVIDENCE = 20
MAX_EVIDENCE_SIZE = 20_000
MAX_EVIDENCE_DEPTH = 10


def _tidy_tags(tags: list[str]) -> list[str]:
    return list(dict.fromkeys(tag for tag in tags if tag))


def _check_storable(evidence: dict[str, Any]) -> dict[str, Any]:
    """Refuse what PostgreSQL cannot store as JSON or what other JSON parsers cannot read."""
    for text in _texts_in(evidence, depth=0):
        no_nul(text)
    try:
        written = json.dumps(evidence, allow_nan=False)
    except ValueError:
        raise ValueError("Numbers must be finite.") from None
    if len(written) > MAX_EVIDENCE_SIZE:
        raise ValueError(f"At most {MAX_EVIDENCE_SIZE:,} characters of JSON are allowed; this has {len(written):,}.")
    if len(written) * MOST_GROWTH > MAX_EVIDENCE_SIZE:
        check_stored(json.dumps(scrub_all(evidence)[0]), MAX_EVIDENCE_SIZE)
    return evidence


def _texts_in(value: object, depth: int) -> Iterator[str]:
    if depth > MAX_EVIDENCE_DEPTH:
        raise ValueError(f"At most {MAX_EVIDENCE_DEPTH} levels are allowed.")
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from _texts_in(part, depth + 1)


def _category(word: object) -> Category:
    return category_named(_text(word))[0]


def _role(word: object) -> Role:
    return role_named(_text(word))


def _text(word: object) -> str:
    if not isinstance(word, str):
        raise ValueError("Enter text.")
    return word


def _in_the_future(moment: datetime) -> datetime:
    """Refuse a time in the past: the memory would be reported as saved, but nobody could read it."""
    if moment <= timezone.now():
        raise ValueError("This is in the past.")
    return moment


def _no_credential(key: str) -> str:
    """Refuse credentials instead of replacing them, because two keys would become the same one."""
    if found := scrub(key)[1]:
        raise ValueError(f"This looks like a credential ({found[0]}), which is no name for a memory.")
    return key


Content = Annotated[
    Text, StringConstraints(min_length=1, max_length=MAX_CONTENT), AfterValidator(visible), at_most(MAX_CONTENT)
]
Summary = Annotated[Text, StringConstraints(max_length=MAX_SUMMARY), at_most(MAX_SUMMARY)]
Name = Annotated[Text, StringConstraints(max_length=MAX_NAME)]
Short = Annotated[Text, StringConstraints(max_length=64)]
Reason = Annotated[Text, StringConstraints(max_length=MAX_REASON), at_most(MAX_REASON)]
Tag = Annotated[Text, StringConstraints(max_length=MAX_TAG), at_most(MAX_TAG)]
Tags = Annotated[list[Tag], Field(max_length=MAX_TAGS), AfterValidator(_tidy_tags)]
Importance = Annotated[Number, Field(ge=1, le=10)]
Confidence = Annotated[Fraction, Field(ge=0, le=1, allow_inf_nan=False)]
Source = Annotated[Text, StringConstraints(min_length=1, max_length=32)]
Evidence = Annotated[
    dict[str, Any], Field(max_length=MAX_EVIDENCE), AfterValidator(_check_storable), AfterValidator(tidy_evidence)
]
Key = Annotated[Name, AfterValidator(check_key), AfterValidator(_no_credential)]
CategoryWord = Annotated[Category, BeforeValidator(_category, json_schema_input_type=str)]
RoleWord = Annotated[Role, BeforeValidator(_role, json_schema_input_type=str)]
Expiry = Annotated[Moment, AfterValidator(_in_the_future)]
Ids = Annotated[list[UUID], Field(max_length=100)]


class MemoryDraft(Input):
    """A new memory. `kind` is accepted for `category`, `type` for `role`."""

    # Factories, because pydantic deep-copies a mutable default for every row, and an import may have a million.
    content: Content
    category: CategoryWord = Category.GENERAL
    role: RoleWord = Role.CONTEXT
    importance: Importance = 5
    confidence: Confidence = 1.0
    key: Key = ""
    summary: Summary = ""
    tags: Tags = Field(default_factory=list)
    pinned: bool = False
    visibility: Visibility = Visibility.INSTANCE
    owner: Annotated[Name, Field(validate_default=True)] = ""
    source: Source | None = None
    source_conversation_id: UUID | None = None
    source_message_ids: Ids = Field(default_factory=list)
    occurred_at: Moment | None = None
    channel: Short = ""
    expires_at: Expiry | None = None
    evidence: Evidence = Field(default_factory=dict)
    supersede_reason: Reason = ""
    dedupe: Literal["update", "create", "reject"] = "update"

    @model_validator(mode="before")
    @classmethod
    def _resolve_aliases(cls, data: Any) -> Any:
        """Also treat null as left out, in fields that can be empty. So it clears none under a key that is taken."""
        if not isinstance(data, dict):
            return data
        return resolve_words({k: v for k, v in data.items() if v is not None or snake_name(k) not in CAN_BE_NULL})

    @field_validator("owner")
    @classmethod
    def _private_needs_owner(cls, owner: str, info: ValidationInfo) -> str:
        if info.data.get("visibility") == Visibility.PRIVATE and not owner:
            raise ValueError("A private memory needs an owner.")
        return owner


# A memory always has these: they can be changed, but not removed.
NEVER_NULL = ("content", "category", "role", "importance", "confidence", "pinned", "visibility")


class MemoryChanges(Input):
    """What to change about a memory; what is left out stays as it is."""

    model_config = ConfigDict(json_schema_extra=never_null(*NEVER_NULL))

    content: Content | None = None
    category: CategoryWord | None = None
    role: RoleWord | None = None
    importance: Importance | None = None
    confidence: Confidence | None = None
    key: Key | None = None
    summary: Summary | None = None
    tags: Tags | None = None
    pinned: bool | None = None
    visibility: Visibility | None = None
    owner: Name | None = None
    source_conversation_id: UUID | None = None
    source_message_ids: Ids | None = None
    occurred_at: Moment | None = None
    channel: Short | None = None
    expires_at: Expiry | None = None
    evidence: Evidence | None = None
    supersede_reason: Reason = ""

    @model_validator(mode="before")
    @classmethod
    def _resolve_aliases(cls, data: Any) -> Any:
        """Also replace null by the field's empty value."""
        if not isinstance(data, dict):
            return data
        return resolve_words({k: EMPTY.get(snake_name(k)) if v is None else v for k, v in data.items()})

    _not_null = field_validator(*NEVER_NULL, mode="before")(not_null)

    def changed_fields(self) -> dict[str, Any]:
        """The columns to write; None clears a link or a date."""
        return {name: getattr(self, name) for name in self.model_fields_set - {"supersede_reason"}}


# The empty values of these fields. All other fields are required or nullable.
EMPTY: dict[str, Any] = {
    **dict.fromkeys(("key", "summary", "owner", "channel", "supersede_reason"), ""),
    **{"tags": [], "source_message_ids": [], "evidence": {}},
}
CAN_BE_NULL = {*EMPTY, "source", "source_conversation_id", "occurred_at", "expires_at"}


def resolve_words(data: dict[str, Any]) -> Any:
    """Rename `kind` and `type` to `category` and `role`, and add the role that a category alias implies."""
    for other, name in (("kind", "category"), ("type", "role")):
        if other in data:
            if name in data:
                raise ValueError(f"Send {name} or {other}, not both.")
            data[name] = data.pop(other)
    return with_role_of_category(data)


def with_role_of_category(data: Any) -> Any:
    """Add the role that a category alias implies: `skill-note` is a lesson."""
    if not isinstance(data, dict) or not isinstance(data.get("category"), str) or "role" in data:
        return data
    try:
        role = category_named(data["category"])[1]
    except ValueError:
        return data  # the validator of the field reports it
    return {**data, "role": role} if role else data
