"""Memories as a table: the columns of a CSV file, and cells that no spreadsheet takes for a formula.

A cell that starts like a formula is written with an apostrophe before it, and so is one that starts with an apostrophe
before such a character; reading takes exactly one away. So nothing is lost, and nothing is executed.
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
# Other words for two of them, and one that means nothing.
ALSO_KNOWN = ("kind", "type", "instanceId")
# Spreadsheets write what their country does, and people write headings with capitals.
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
    return harmless(value) if isinstance(value, str) else str(value)


def harmless(text: str) -> str:
    """A spreadsheet must not take it for a formula."""
    return f"'{text}" if FORMULA.match(text) else text


def column_named(heading: str) -> str:
    name = heading.strip()
    return _NAMES.get(name.lower(), name)


def is_known(name: str) -> bool:
    return name in COLUMNS or name in ALSO_KNOWN


def first_rows(start: str, delimiter: str) -> list[list[str]]:
    """The header and the row below it, as far as there are any."""
    try:
        return list(islice(filter(None, csv.reader(io.StringIO(start, newline=""), delimiter=delimiter)), 2))
    except csv.Error:
        return []


def delimiter_of(start: str) -> str:
    """The one that finds the most columns we know; the comma, if none finds any."""
    return max(DELIMITERS, key=lambda each: _known_in_header(first_rows(start, each)))


def _known_in_header(rows: list[list[str]]) -> int:
    return sum(is_known(column_named(cell)) for cell in rows[0]) if rows else 0


def from_cells(cells: Mapping[str, str]) -> dict[str, Any]:
    """A row of a table as the fields of a memory; an empty cell says nothing."""
    return {name: _value(name, cell) for name, cell in cells.items() if cell != ""}


def _value(name: str, cell: str) -> Any:
    cell = cell[1:] if GUARDED.match(cell) else cell
    if name not in STRUCTURED:
        return cell
    try:
        value = value_of(cell)
    except ValueError:
        value = cell
    # A tag like 2024 or true is JSON as well.
    is_meant = name == "evidence" or isinstance(value, list | dict)
    return value if is_meant else [part.strip() for part in cell.split(",")]
