"""JSON as somebody sent or typed it, strictly: nothing is dropped, and nothing taken that no answer could repeat."""

import json
import re
from typing import Any

SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class NotJson(ValueError):
    """With a sentence's end that says why."""


def parse_json(text: str) -> Any:
    """Without NaN, names that are there twice and halves of surrogate pairs; `NotJson` says which."""
    try:
        data = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_each_once)
        if SURROGATE_ESCAPE.search(text):
            json.dumps(data, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        raise NotJson("half of a surrogate pair is no text") from None
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except ValueError as error:
        raise NotJson(str(error)) from None
    return data


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not allowed")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two values under one name the last would be taken, and the sender not be told."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is there twice")
    return found
