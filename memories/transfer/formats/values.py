"""JSON from a file: one value that cannot be used is a problem of its row, and not the end of an import."""

import json
import re
from dataclasses import dataclass
from typing import Any

from memoryconsole.parsing import SURROGATE_ESCAPE

STRINGS_AND_BRACKETS = re.compile(r'"(?:[^"\\]|\\.|\\\Z)*(?:"|\Z)|[\[{\]}]', re.DOTALL)
DEEPER = {"[": 1, "{": 1, "]": -1, "}": -1}
TOO_DEEP = "This is nested too deeply."
HALF_A_PAIR = "This has half of a surrogate pair, which is no text."
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class Unusable:
    """A value that ends where it should, but that nobody can store."""

    reason: str


def value_of(text: str) -> Any:
    """The value that the text is, or a `ValueError` that says why it is none."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except ValueError as error:
        # Behind the colon is where, and sometimes what.
        raise ValueError(f"This is not JSON: {str(error).partition(':')[0]}.") from None
    if not _is_text(text, len(text), value):
        raise ValueError(HALF_A_PAIR)
    return value


def first_value(text: str) -> tuple[Any, int]:
    """The value that the text begins with, perhaps `Unusable`, and where it ends; `ValueError` when it has no end."""
    try:
        value, end = _decode(text)
    except RecursionError:
        return Unusable(TOO_DEEP), _end_of_first(text)
    return value if _is_text(text, end, value) else Unusable(HALF_A_PAIR), end


def _is_text(written: str, end: int, value: Any) -> bool:
    """No database takes half of a surrogate pair, and only an escape can write one."""
    if not SURROGATE_ESCAPE.search(written, 0, end):
        return True
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def _end_of_first(text: str) -> int:
    depth = 0
    for found in STRINGS_AND_BRACKETS.finditer(text):
        depth += DEEPER.get(found[0], 0)
        if depth == 0:
            return found.end()
    raise ValueError("This does not end.")
