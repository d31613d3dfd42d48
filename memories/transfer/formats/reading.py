"""Reading a file of any format as a stream of rows with line numbers, in bounded memory."""

import codecs
import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from memories.file_types import TEXT, UNKNOWN, type_of
from memories.transfer.formats import chatgpt, mem0, table
from memories.transfer.formats.detecting import LISTS, Format, format_of, is_document, text_of
from memories.transfer.formats.values import Unusable, first_value, value_of
from memoryconsole.errors import Invalid

# Room for thousands of earlier texts of one memory. Longer lines are not read into memory.
LONGEST = 64 * 1024 * 1024
PEEKED = 64 * 1024
PART = 16 * 1024
JSON_SPACE = " \t\r\n"


@dataclass(slots=True)
class Row:
    """A row of the file: the fields of a memory, or a `problem`, or `is_left_out` if the file says so."""

    line: int
    fields: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    is_left_out: bool = False


def rows_of(file: IO[bytes], format: Format | None = None) -> Iterator[Row]:
    """All rows of the file. Without a `format` it is detected."""
    file.seek(0)
    start = file.read(PEEKED)
    file.seek(len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0)
    format, text = format or format_of(start), text_of(start)
    if format == "csv":
        return _table_rows(file, table.delimiter_of(text))
    if format == "jsonl" or (format == "mem0" and not is_document(text)):
        return _line_rows(file, "mem0" if format == "mem0" else None)
    if is_document(text):
        return _document_rows(file, format)
    _check_text(start)
    return _text_rows(file)


UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
OTHER_ENCODING = "This is text in UTF-16. Save it as UTF-8."
NO_TEXT_FILE = "This is no text file. Memories come as JSON lines, CSV, JSON or lines of text, and not in an archive."


def _check_text(start: bytes) -> None:
    """Every line can be a memory where nothing tells what a line is, also those of a document or an archive."""
    if start.startswith(UTF_16):
        raise Invalid({"file": [OTHER_ENCODING]})
    is_known = type_of(start) not in (TEXT, UNKNOWN)
    if b"\x00" in start or (is_known and "\ufffd" in text_of(start)):
        raise Invalid({"file": [NO_TEXT_FILE]})


def detect_format(file: IO[bytes], name: str = "") -> Format:
    file.seek(0)
    return format_of(file.read(PEEKED), name)


def _lines(file: IO[bytes]) -> Iterator[tuple[int, str | None]]:
    """Line numbers and lines; None for a line that is not UTF-8 or too long."""
    number = 0
    while line := file.readline(LONGEST + 1):
        number += 1
        if len(line) > LONGEST:
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST)
            yield number, None
            continue
        try:
            yield number, line.decode()
        except UnicodeDecodeError:
            yield number, None


NOT_TEXT = f"This is not UTF-8 text, or longer than {LONGEST:,} bytes."


def _line_rows(file: IO[bytes], shape: Format | None) -> Iterator[Row]:
    for number, line in _lines(file):
        if line is None:
            yield Row(number, problem=NOT_TEXT)
        elif line.strip():
            try:
                item = value_of(line)
            except ValueError as error:
                yield Row(number, problem=str(error))
            else:
                yield _row(number, item, shape)


def _text_rows(file: IO[bytes]) -> Iterator[Row]:
    for number, line in _lines(file):
        if line is None:
            yield Row(number, problem=NOT_TEXT)
        elif line.strip():
            yield Row(number, chatgpt.from_line(line))


def _row(line: int, item: Any, shape: Format | None) -> Row:
    if isinstance(item, str):
        return Row(line, chatgpt.from_line(item)) if shape == "chatgpt" else Row(line, {"content": item})
    if not isinstance(item, dict):
        return Row(line, problem="This is not an object.")
    if shape == "mem0" or mem0.is_mem0(item):
        return Row(line, mem0.from_mem0(item)) if "memory" in item else Row(line, problem="It has no field memory.")
    if shape == "chatgpt" and not table.is_memory(item):
        return Row(line, is_left_out=True) if chatgpt.is_switched_off(item) else Row(line, chatgpt.from_item(item))
    return Row(line, item)


def _table_rows(file: IO[bytes], delimiter: str) -> Iterator[Row]:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    line = 1
    try:
        reader = csv.reader(text, strict=True, delimiter=delimiter)
        names = [table.column_named(cell) for cell in next(filter(None, reader), [])]
        _check_header(names)
        line = reader.line_num + 1
        for cells in reader:
            if cells:
                yield _table_row(line, names, cells)
            line = reader.line_num + 1
    except UnicodeDecodeError:
        yield Row(line, problem="This is not UTF-8 text; the rest of the file was not read.")
    except csv.Error as error:
        yield Row(line, problem=f"{error}; the rest of the file was not read.")
    finally:
        text.detach()


KNOWN_COLUMNS = f"Known columns: {', '.join(table.COLUMNS)}."
NO_CONTENT = (
    f"The first line of a CSV file names the columns, and one of them is content. {KNOWN_COLUMNS}"
    " If this is no table but has a memory on each line, choose the format chatgpt."
)


def _check_header(names: list[str]) -> None:
    unknown = [name or "one without a name" for name in names if not table.is_known(name)]
    if names and "content" not in names:
        raise Invalid({"file": [NO_CONTENT]})
    if unknown:
        raise Invalid({"file": [f"Unknown columns: {', '.join(unknown)[:200]}. {KNOWN_COLUMNS}"]})
    # With two columns of the same name, the cells of one would be lost.
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise Invalid({"file": [f"These columns are there twice: {', '.join(twice)}."]})


def _table_row(line: int, names: list[str], cells: list[str]) -> Row:
    if len(cells) != len(names):
        return Row(line, problem="It has more or fewer cells than there are columns.")
    return Row(line, table.from_cells(dict(zip(names, cells, strict=True))))


def _document_rows(file: IO[bytes], shape: Format) -> Iterator[Row]:
    """The items of a JSON list, one after the other, because the file may be larger than memory."""
    window = _Window(file)
    if not window.enter_list():
        yield Row(1, problem="There is no list of memories in this file.")
        return
    while (found := window.next_item()) is not None:
        line, item = found
        if isinstance(item, _Broken):
            yield Row(line, problem="This is not JSON; the rest of the file was not read.")
            return
        yield Row(line, problem=item.reason) if isinstance(item, Unusable) else _row(line, item, shape)


class _Broken:
    """Marks a position without a valid JSON value."""


class _Window:
    """The part of a JSON document that is in memory, and moves through the file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text = ""
        self._line = 1

    def enter_list(self) -> bool:
        """Move behind the opening bracket of the list, which is the document or its field `results` or `memories`."""
        self._skip(JSON_SPACE)
        if self._text[:1] == "{":
            while not (places := [at for name in LISTS if (at := self._text.find(f'"{name}"')) >= 0]):
                if len(self._text) > LONGEST or not self._more():
                    return False
            self._drop(min(places))
            while "[" not in self._text:
                if not self._more():
                    return False
            self._drop(self._text.index("["))
        if self._text[:1] != "[":
            return False
        self._drop(1)
        return True

    def next_item(self) -> tuple[int, Any] | None:
        self._skip(JSON_SPACE + ",")
        if self._text[:1] in ("]", ""):
            return None
        line = self._line
        while True:
            try:
                item, end = first_value(self._text)
            except ValueError:
                if len(self._text) > LONGEST or not self._more():
                    return line, _Broken()
            else:
                self._drop(end)
                return line, item

    def _skip(self, characters: str) -> None:
        while True:
            rest = self._text.lstrip(characters)
            self._drop(len(self._text) - len(rest))
            if rest or not self._more():
                return

    def _drop(self, length: int) -> None:
        self._line += self._text.count("\n", 0, length)
        self._text = self._text[length:]

    def _more(self) -> bool:
        """Double the text in memory, so that a long item is not parsed from its beginning too often."""
        part = self._file.read(max(PART, len(self._text)))
        try:
            self._text += self._decode(part)
        except UnicodeDecodeError:
            return False
        return bool(part)
