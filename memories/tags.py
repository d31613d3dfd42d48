"""The tags an instance uses, for completion."""

from dataclasses import dataclass

from django.db import connection

from accounts.access import Scope
from memories.filters import Filters, matching

# Only this many of the latest memories are read, so that it is equally fast in any instance.
LOOKED_AT = 5_000


@dataclass(frozen=True, slots=True)
class KnownTag:
    tag: str
    memories: int


COUNT = """
SELECT tag, count(*) AS memories
FROM ({latest}) AS latest, unnest(latest.tags) AS tag
WHERE starts_with(lower(tag), lower(%s))
GROUP BY tag ORDER BY memories DESC, tag LIMIT %s::bigint
"""


def known_tags(scope: Scope, prefix: str = "", *, limit: int = 200) -> list[KnownTag]:
    """The tags of the latest memories the reader may see, the most used first."""
    latest = matching(scope, Filters()).order_by("-id").values("tags")[:LOOKED_AT]
    sql, values = latest.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(COUNT.format(latest=sql), [*values, prefix, limit])
        return [KnownTag(*row) for row in cursor.fetchall()]
