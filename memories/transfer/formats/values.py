"""Parsing JSON values of a file, so that an unusable value is a problem of its row and not of the whole import."""

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
    """A JSON value with a proper end that cannot be stored."""

    reason: str


def value_of(text: str) -> Any:
    """Parse the text, or raise a `ValueError` with a message for people."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except ValueError as error:
        # After the colon is the position, and sometimes a part of the text.
        raise ValueError(f"This is not JSON: {str(error).partition(':')[0]}.") from None
    if not _is_text(text, len(text), value):
        raise ValueError(HALF_A_PAIR)
    return value


def first_value(text: str) -> tuple[Any, int]:
    """The value at the beginning of the text, or `Unusable`, and where it ends. `ValueError` if it has no end."""
    try:
        value, end = _decode(text)
    except RecursionError:
        return Unusable(TOO_DEEP), _end_of_first(text)
    return value if _is_text(text, end, value) else Unusable(HALF_A_PAIR), end


def _is_text(written: str, end: int, value: Any) -> bool:
    """Whether it has no half of a surrogate pair, which PostgreSQL cannot store. Only an escape can write one."""
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
