"""Memories as a CSV table, with cells that no spreadsheet executes as a formula.

A cell that starts like a formula gets an apostrophe before it, and so does one that starts with apostrophes followed by
such a character. Reading removes exactly one apostrophe, so nothing is lost.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from memories.transfer.formats.values import value_of

COLUMNS = (
    "id",
    "key",
    "content",
    "summary",
    "category",
    "role",
    "importance",
    "confidence",
    "tags",
    "pinned",
    "visibility",
    "owner",
    "source",
    "sourceConversationId",
    "sourceMessageIds",
    "occurredAt",
    "channel",
    "expiresAt",
    "evidence",
    "status",
    "supersededById",
    "supersedeReason",
    "accessCount",
    "lastAccessedAt",
    "createdAt",
    "updatedAt",
)
# Aliases of two columns, and one column that is ignored.
ALSO_KNOWN = ("kind", "type", "instanceId")
# Fields that the exports of other programs have too.
COMMON = frozenset({"id", "content", "createdAt", "updatedAt", "status", "source", "type"})
# The delimiter that spreadsheets write depends on the country.
DELIMITERS = (",", ";", "\t")
_NAMES = {name.lower(): name for name in (*COLUMNS, *ALSO_KNOWN)}
STRUCTURED = frozenset({"tags", "sourceMessageIds", "evidence"})
FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
GUARDED = re.compile(r"''*[=+\-@\t\r\n＝＋－＠]")


def table_text(rows: Iterable[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([_cell(row[name]) for name in COLUMNS] for row in rows)
    return text.getvalue()


def header() -> str:
    return ",".join(COLUMNS) + "\r\n"


def _cell(value: Any) -> str:
    if value is None or value in ([], {}):
        return ""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return escaped_formula(value) if isinstance(value, str) else str(value)


def escaped_formula(text: str) -> str:
    """The text with an apostrophe before it if a spreadsheet would execute it."""
    return f"'{text}" if FORMULA.match(text) else text


def column_named(heading: str) -> str:
    name = heading.strip()
    return _NAMES.get(name.lower(), name)


def is_known(name: str) -> bool:
    return name in COLUMNS or name in ALSO_KNOWN


def is_memory(item: Mapping[str, Any]) -> bool:
    """Whether it has a field that only our own exports have, so that it must be read as one of them."""
    return "content" in item and any(is_known(name) and name not in COMMON for name in item)


def first_rows(start: str, delimiter: str) -> list[list[str]]:
    """The header and the row below it, if there are any."""
    try:
        return list(islice(filter(None, csv.reader(io.StringIO(start, newline=""), delimiter=delimiter)), 2))
    except csv.Error:
        return []


def delimiter_of(start: str) -> str:
    """The delimiter that yields the most known columns; the comma if none yields any."""
    return max(DELIMITERS, key=lambda each: _known_in_header(first_rows(start, each)))


def _known_in_header(rows: list[list[str]]) -> int:
    return sum(is_known(column_named(cell)) for cell in rows[0]) if rows else 0


def from_cells(cells: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a memory from a row; empty cells are left out."""
    return {name: _value(name, cell) for name, cell in cells.items() if cell != ""}


def _value(name: str, cell: str) -> Any:
    cell = cell[1:] if GUARDED.match(cell) else cell
    if name not in STRUCTURED:
        return cell
    try:
        value = value_of(cell)
    except ValueError:
        value = cell
    # A tag like 2024 or true is valid JSON too, so only lists and objects count.
    is_json = name == "evidence" or isinstance(value, list | dict)
    return value if is_json else [part.strip() for part in cell.split(",")]
