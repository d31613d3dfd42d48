"""From an id somebody sent to the row it stands for."""

from typing import TypeVar

from django.db.models import Model, QuerySet

from memoryconsole.errors import NotFound
from memoryconsole.ids import parse_id

M = TypeVar("M", bound=Model)


def find_among(rows: QuerySet[M], raw_id: object, refusal: str) -> M:
    """One of the rows the caller may have. Malformed, absent and somebody else's are refused in the same words."""
    id = parse_id(raw_id)
    found = rows.filter(id=id).first() if id else None
    if found is None:
        raise NotFound(refusal)
    return found
