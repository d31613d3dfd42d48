"""How ids, times and pages of lists look in JSON."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import WithJsonSchema
from typing_extensions import TypedDict

Id = Annotated[str, WithJsonSchema({"type": "string", "format": "uuid"})]
When = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]


class SliceJson(TypedDict):
    """What the answer of a short list has besides the items."""

    total: int
    limit: int
    offset: int


class PageJson(SliceJson):
    """The same of a long list."""

    nextCursor: str | None


def when(moment: datetime) -> str:
    """ISO 8601 in UTC, with a Z."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat()[:-6] + "Z"


def one_of(values: list[str]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": values})
