"""Finding a row by an id from a request."""

from typing import TypeVar

from django.db.models import Model, QuerySet

from memoryconsole.errors import NotFound
from memoryconsole.ids import parse_id

M = TypeVar("M", bound=Model)


def find_among(rows: QuerySet[M], raw_id: object, refusal: str) -> M:
    """Find one of the rows the caller may see. A malformed, unknown or foreign id is refused in the same words."""
    id = parse_id(raw_id)
    found = rows.filter(id=id).first() if id else None
    if found is None:
        raise NotFound(refusal)
    return found
