"""Validation of a memory's evidence, and of the keys of learning entries.

A learning entry's key is `learn:{topic-slug}:{claim-hash}`, so that the same claim always has the same key.
"""

import re
from datetime import date
from typing import Any

CONFIDENCES = ("high", "medium", "low")
LEARNING_KEY = re.compile(r"learn:[a-z0-9]+(?:-[a-z0-9]+)*:[0-9a-f]{6,64}")
MAX_DOMAINS = 100


def check_key(key: str) -> str:
    if key.startswith("learn:") and not LEARNING_KEY.fullmatch(key):
        raise ValueError(
            "A learning entry's key is learn:topic-in-kebab-case:hash, the hash 6 to 64 hexadecimal digits."
        )
    return key


def tidy_evidence(evidence: dict[str, Any]) -> dict[str, Any]:
    """Check and normalise the known fields; leave all others as they are."""
    readers = {"confidence": _confidence, "corroborated": _corroborated, "domains": _domains, "verified": _verified}
    return {name: readers[name](value) if name in readers else value for name, value in evidence.items()}


def _confidence(value: object) -> object:
    if value not in CONFIDENCES:
        raise ValueError(f"confidence is one of: {', '.join(CONFIDENCES)}.")
    return value


def _corroborated(value: object) -> object:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("corroborated is a whole number from 0.")
    return value


def _domains(value: object) -> list[str]:
    """Accept a list, or names separated by commas."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len(names) > MAX_DOMAINS:
        raise ValueError(f"domains is a list of at most {MAX_DOMAINS} names, or names with commas between them.")
    return list(dict.fromkeys(name.strip() for name in names if name.strip()))


def _verified(value: object) -> str:
    """Accept a date, or a date and time, whose time is dropped."""
    try:
        return date.fromisoformat(str(value)[:10]).isoformat()
    except ValueError:
        raise ValueError("verified is a day like 2026-05-12.") from None
