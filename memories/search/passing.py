"""How many memories a filter leaves, which decides how they are searched.

Counting tens of thousands takes longer than searching them, so a count is kept for a minute. An old count can make a
search slower but not wrong: every form of the statement finds the same.
"""

import re
from collections.abc import Mapping
from time import monotonic
from typing import Any, NamedTuple

from django.db import connection

SECONDS, MOST_COUNTS = 60, 1_000
PARAMETER = re.compile(r"%\((\w+)\)s")
COUNT = "SELECT count(*) FROM ({allowed} LIMIT %(at_most)s::bigint) AS first_ones"


class Count(NamedTuple):
    passing: int
    at_most: int
    """Where counting stopped."""
    until: float


_counts: dict[tuple[str, str], Count] = {}


def count_passing(allowed: str, parameters: Mapping[str, Any], *, at_most: int) -> int:
    """How many rows the query `allowed` returns; counting stops at `at_most`."""
    values = {name: parameters[name] for name in PARAMETER.findall(allowed)}
    key = (allowed, repr(values))
    count = _counts.get(key)
    if count is None or count.until < monotonic():
        with connection.cursor() as cursor:
            cursor.execute(COUNT.format(allowed=allowed), {**values, "at_most": at_most})
            count = Count(int(cursor.fetchone()[0]), at_most, monotonic() + SECONDS)
        if len(_counts) >= MOST_COUNTS:
            _counts.clear()
        _counts[key] = count
    # A kept count that stopped at its limit means "that many or more", even if the limit has grown since.
    return at_most if count.passing >= count.at_most else min(count.passing, at_most)
