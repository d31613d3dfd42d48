"""Detecting the format of a file from its first bytes and, if those are not enough, from its name."""

import codecs
import json
import re
from typing import Literal

from memories.transfer.formats import chatgpt, table
from memories.transfer.formats.values import first_value

Format = Literal["jsonl", "csv", "mem0", "chatgpt"]
FORMATS: tuple[Format, ...] = ("jsonl", "csv", "mem0", "chatgpt")
LISTS = ("results", "memories")
# Names by which a table with a single column is recognised.
HEADINGS = frozenset(name.lower() for name in (*table.COLUMNS, *chatgpt.TEXTS))
# A column name: one to three words without surrounding spaces. In prose, a space follows a comma.
NAME = re.compile(r"[^\W\d][\w.()/#-]*(?: [\w.()/#-]+){0,2}")


def text_of(start: bytes) -> str:
    return start.removeprefix(codecs.BOM_UTF8).decode(errors="replace").lstrip()


def format_of(start: bytes, name: str = "") -> Format:
    """The most likely format of a file that begins with these bytes."""
    text = text_of(start)
    if is_document(text):
        return "mem0" if '"memory"' in text else "chatgpt"
    if text[:1] == "{":
        first_line = text.partition("\n")[0]
        return "mem0" if '"memory"' in first_line and '"content"' not in first_line else "jsonl"
    return "csv" if name.lower().endswith((".csv", ".tsv")) or _is_table(text) else "chatgpt"


def is_document(text: str) -> bool:
    """Whether it is one JSON document, a list or an object with a list, and not JSON Lines."""
    if text[:1] == "[":
        is_empty = not text.strip("[] \t\r\n")
        return is_empty or text.lstrip("[ \t\r\n")[:1] in ("{", '"') or _is_list_in_list(text)
    if text[:1] != "{":
        return False
    first_line, head = text.partition("\n")[0], text[:200]
    try:
        first = json.loads(first_line)
    except RecursionError:
        # Too deep to parse: decide by the names at the beginning.
        return any(f'"{name}"' in head for name in LISTS)
    except ValueError:
        return any(f'"{name}"' in head for name in LISTS) or '"content"' not in first_line
    return any(isinstance(first.get(name), list) for name in LISTS) and "content" not in first


def _is_list_in_list(text: str) -> bool:
    """Whether it is JSON like `[[1, 2], [3]]`, which is reported as unusable. `[[Alice]] likes tea` is plain text."""
    inner = text[1:].lstrip()
    if inner[:1] != "[":
        return False
    try:
        _, end = first_value(inner)
    except ValueError:
        return False
    following = inner[end:].lstrip()
    return following[:1] == "," or following.strip() == "]"


def _is_table(text: str) -> bool:
    """Also for tables without our columns, so that they are refused instead of imported as lines of text."""
    return any(_has_header(table.first_rows(text, each)) for each in table.DELIMITERS)


def _has_header(rows: list[list[str]]) -> bool:
    if not rows:
        return False
    names = [table.column_named(cell) for cell in rows[0]]
    if "content" in names:
        return True
    if len(names) == 1:
        return names[0].lower() in HEADINGS
    named = [cell for cell in rows[0] if cell]
    return len(named) > 1 and all(map(NAME.fullmatch, named)) and [len(row) for row in rows[1:]] == [len(names)]
