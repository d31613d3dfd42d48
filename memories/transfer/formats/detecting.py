"""What a file is: from how it begins and, where that leaves a choice, from what it is called."""

import codecs
import json
import re
from typing import Literal

from memories.transfer.formats import chatgpt, table
from memories.transfer.formats.values import first_value

Format = Literal["jsonl", "csv", "mem0", "chatgpt"]
FORMATS: tuple[Format, ...] = ("jsonl", "csv", "mem0", "chatgpt")
LISTS = ("results", "memories")
# What a single column may be called by somebody who does not know our names.
HEADINGS = frozenset(name.lower() for name in (*table.COLUMNS, *chatgpt.TEXTS))
# One to three words, with nothing around them: in prose a space follows a comma.
NAME = re.compile(r"[^\W\d][\w.()/#-]*(?: [\w.()/#-]+){0,2}")


def text_of(start: bytes) -> str:
    return start.removeprefix(codecs.BOM_UTF8).decode(errors="replace").lstrip()


def format_of(start: bytes, name: str = "") -> Format:
    """A guess from the first bytes, for files that nobody named a format for."""
    text = text_of(start)
    if is_document(text):
        return "mem0" if '"memory"' in text else "chatgpt"
    if text[:1] == "{":
        first_line = text.partition("\n")[0]
        return "mem0" if '"memory"' in first_line and '"content"' not in first_line else "jsonl"
    return "csv" if name.lower().endswith((".csv", ".tsv")) or _is_table(text) else "chatgpt"


def is_document(text: str) -> bool:
    """One JSON value over all lines, a list or an object around a list, rather than an object on each line."""
    if text[:1] == "[":
        is_empty = not text.strip("[] \t\r\n")
        return is_empty or text.lstrip("[ \t\r\n")[:1] in ("{", '"') or _is_list_in_list(text)
    if text[:1] != "{":
        return False
    first_line, head = text.partition("\n")[0], text[:200]
    try:
        first = json.loads(first_line)
    except RecursionError:
        # Of a document over several lines, the first one is short.
        return any(f'"{name}"' in head for name in LISTS)
    except ValueError:
        return any(f'"{name}"' in head for name in LISTS) or '"content"' not in first_line
    return any(isinstance(first.get(name), list) for name in LISTS) and "content" not in first


def _is_list_in_list(text: str) -> bool:
    """`[[1, 2], [3]]`, where nothing is a memory: better said than stored as text. `[[Alice]] likes tea` is none."""
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
    """Also one that does not name our columns: it is better refused than taken for a list of memories."""
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
