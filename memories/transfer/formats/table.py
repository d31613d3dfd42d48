"""Memories as a table: the columns of a CSV file, and cells that no spreadsheet takes for a formula.

A cell that starts like a formula is written with an apostrophe before it, and so is one that starts with an apostrophe
before such a character; reading takes exactly one away. So nothing is lost, and nothing is executed.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
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
    text = str(value)
    return f"'{text}" if isinstance(value, str) and FORMULA.match(text) else text


def from_cells(cells: Mapping[str, str]) -> dict[str, Any]:
    """A row of a table as the fields of a memory; an empty cell says nothing."""
    return {name: _value(name, cell) for name, cell in cells.items() if cell != ""}


def _value(name: str, cell: str) -> Any:
    cell = cell[1:] if GUARDED.match(cell) else cell
    if name not in STRUCTURED:
        return cell
    try:
        return value_of(cell)
    except ValueError:
        return [part.strip() for part in cell.split(",")] if name != "evidence" else cell
