"""Strict JSON: nothing is dropped, and nothing accepted that could not be answered as JSON again."""

import json
import re
from typing import Any

SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class NotJson(ValueError):
    """The message is the reason, to be put after a colon."""


def parse_json(text: str) -> Any:
    """Refuse NaN, duplicate names and lone surrogates with `NotJson`, besides what is not JSON."""
    try:
        data = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_each_once)
        if SURROGATE_ESCAPE.search(text):
            json.dumps(data, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        raise NotJson("half of a surrogate pair is no text") from None
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except (json.JSONDecodeError, _Refused) as error:
        raise NotJson(str(error)) from None
    except ValueError:
        # Python's own words for it name a switch of Python.
        raise NotJson("a number in it has too many digits") from None
    return data


class _Refused(ValueError):
    """With what is not taken although it can be read."""


def _no_constant(name: str) -> Any:
    raise _Refused(f"{name} is not allowed")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse duplicate names: the last value would win without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Refused(f"{next(name for name in names if names.count(name) > 1)!r} is there twice")
    return found
