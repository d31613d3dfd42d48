"""How many memories filters leave. How to search them depends on it, and nothing else: every way finds the same.

Counting tens of thousands takes longer than finding the best of them, so the count is remembered for a minute.
"""

import re
from collections.abc import Mapping
from time import monotonic
from typing import Any, NamedTuple

from django.db import connection

SECONDS, MOST_KNOWN = 60, 1_000
PARAMETER = re.compile(r"%\((\w+)\)s")
COUNT = "SELECT count(*) FROM ({allowed} LIMIT %(at_most)s::bigint) AS first_ones"


class Known(NamedTuple):
    passing: int
    at_most: int
    until: float


_known: dict[tuple[str, str], Known] = {}


def count_passing(allowed: str, parameters: Mapping[str, Any], *, at_most: int) -> int:
    """How many the query `allowed` finds; it stops counting at `at_most`."""
    used = {name: parameters[name] for name in PARAMETER.findall(allowed)}
    asked = (allowed, repr(used))
    known = _known.get(asked)
    if known is None or known.until < monotonic():
        with connection.cursor() as cursor:
            cursor.execute(COUNT.format(allowed=allowed), {**used, "at_most": at_most})
            known = Known(int(cursor.fetchone()[0]), at_most, monotonic() + SECONDS)
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[asked] = known
    # The instance may have grown since then, and so may the number at which counting stops.
    return at_most if known.passing >= known.at_most else min(known.passing, at_most)
