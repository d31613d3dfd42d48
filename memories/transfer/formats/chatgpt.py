"""ChatGPT's memories: `memory.json` of its data export, or a copied list with one memory per line."""

import re
from datetime import UTC, datetime
from typing import Any

SOURCE = "chatgpt"
BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,4}[.)])\s+")
DATED = re.compile(r"^\[(\d{4}-\d{2}-\d{2})\]\s*(?:[-–—:]\s*)?")
TEXTS = ("content", "text", "value", "memory")
CREATED = ("created_at", "createdAt", "create_time", "created_timestamp")
UPDATED = ("updated_at", "updatedAt", "update_time", "last_updated")


def from_line(line: str) -> dict[str, Any]:
    """A memory from a line, without its bullet. A date in square brackets is its creation date."""
    text = BULLET.sub("", line).strip()
    day = DATED.match(text)
    found: dict[str, Any] = {"content": text[day.end() :] if day else text, "source": SOURCE}
    return {**found, "createdAt": f"{day[1]}T00:00:00Z"} if day else found


def from_item(item: dict[str, Any]) -> dict[str, Any]:
    found = {
        "content": next((item[name] for name in TEXTS if item.get(name)), ""),
        "createdAt": next((_moment(item[name]) for name in CREATED if item.get(name)), None),
        "updatedAt": next((_moment(item[name]) for name in UPDATED if item.get(name)), None),
        "source": SOURCE,
    }
    return {name: value for name, value in found.items() if value is not None}


def is_switched_off(item: dict[str, Any]) -> bool:
    return item.get("enabled") is False


def _moment(value: Any) -> Any:
    """Convert Unix time to ISO 8601; leave anything else as it is."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 10**11:
        return datetime.fromtimestamp(value, UTC).isoformat()
    return value
