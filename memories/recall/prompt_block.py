"""The block that goes into a prompt: one line per memory, grouped by role, within a budget of tokens.

Pure functions. Memory text is data: it is escaped so that it cannot end the block, begin a line or look like a label.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import NamedTuple
from uuid import UUID

OPENING, CLOSING = "<memory-context>", "</memory-context>"
LABELS = ("IDENTITY", "LESSON", "DECISION", "CONTEXT", "REFERENCE", "HISTORICAL", "PROCEDURE", "SUMMARY")
BYTES_PER_TOKEN = 3

_TAG = re.compile(r"<(/?)\s*memory-context\b[^>]*>?", re.IGNORECASE)
_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
# Invisible characters: soft hyphens and zero-width spaces, direction marks, byte order marks, and the "tag" characters
# and variation selectors that can hide whole texts. Zero-width joiners stay, because some languages need them.
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e0fff]"
)
_JOINED = "[\u200c\u200d]*"
_LABEL = re.compile(rf"\[[\s\u200c\u200d]*({'|'.join(map(_JOINED.join, LABELS))})[\s\u200c\u200d]*\]", re.IGNORECASE)
# A quick check, because most texts need no escaping. It lists the invisible characters that `isprintable` accepts.
_SUSPICIOUS = re.compile("[<>&\\[\u034f\U000e0100-\U000e01ef]|  |^ | $")
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_BRACKETS = str.maketrans("[]", "()")


class Wording(NamedTuple):
    """One text for an entry: `form` is content, summary or excerpt."""

    form: str
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that may go into the block, with the first of its wordings that fits."""

    id: UUID
    label: str
    name: str
    wordings: Sequence[Wording]
    order: int = 0
    """The position among entries with the same label."""
    date: str = ""
    """When it happened, as `date_of` says it."""


class Turn(NamedTuple):
    """Entries that get room next, at most `share` of what is left by then."""

    entries: Sequence[Entry]
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Placed:
    line: str
    form: str

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.line + "\n")


@dataclass(frozen=True, slots=True)
class Block:
    text: str
    placed: Mapping[UUID, Placed]
    """In the order of the block."""

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.text)


def estimate_tokens(text: str) -> int:
    """An upper estimate for any tokenizer: a token is rarely shorter than three bytes."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def compose(turns: Sequence[Turn], budget: int) -> Block:
    """Give room to the turns one after the other. In the block, entries are sorted by label and their `order`."""
    placed: dict[UUID, tuple[tuple[int, int], Placed]] = {}
    room = budget * BYTES_PER_TOKEN - len(f"{OPENING}\n{CLOSING}")
    for entries, share in turns:
        allowed = int(room * share)
        room -= allowed
        for entry in entries:
            found = None if entry.id in placed else _fitting(entry, allowed)
            if found:
                placed[entry.id] = (LABELS.index(entry.label), entry.order), found
                allowed -= _size(found.line)
        room += allowed
    ordered = dict(sorted(placed.items(), key=lambda item: item[1][0]))
    return render({id: one for id, (_, one) in ordered.items()})


def render(placed: Mapping[UUID, Placed]) -> Block:
    return Block("\n".join([OPENING, *(one.line for one in placed.values()), CLOSING]), placed)


def _fitting(entry: Entry, room: int) -> Placed | None:
    for form, text in entry.wordings:
        # Do not escape a text that is obviously too long.
        if len(text) <= room * 4 and _size(line := line_for(entry, text)) <= room:
            return Placed(line, form)
    return None


def _size(line: str) -> int:
    return len(line.encode()) + 1


def line_for(entry: Entry, text: str) -> str:
    """A text that names the year says itself when it happened."""
    is_said = not entry.date or re.search(rf"(?<!\d){entry.date[:4]}(?!\d)", text)
    date = "" if is_said else f" ({entry.date})"
    return f"[{entry.label}] [{_escaped(entry.name).translate(_BRACKETS)}]: {_escaped(text)}{date}"


def date_of(moment: datetime | None) -> str:
    """In UTC, because a model cannot know the reader's zone; a day alone if that is all that is known."""
    if moment is None:
        return ""
    at = moment.astimezone(UTC).replace(tzinfo=None)
    return at.date().isoformat() if at.time() == time.min else f"{at.isoformat(' ', 'minutes')} UTC"


def _escaped(text: str) -> str:
    """The text on one line, without invisible characters, markup or anything that looks like a label."""
    if text.isprintable() and not _SUSPICIOUS.search(text):
        return text
    flat = _SPACE.sub(" ", _HIDDEN.sub("", text)).strip()
    return _LABEL.sub(r"(\1)", flat.translate(_MARKUP))


def short_name(id: UUID) -> str:
    """A name for a memory without a key: the end of its id, because the beginning is a time that others may share."""
    return id.hex[-8:]


def without_blocks(text: str) -> str:
    """A message without the memory blocks in it, so that recalled memories are not searched for or learnt again.

    Also removes blocks that are nested or never closed.
    """
    kept, depth, end = [], 0, 0
    for tag in _TAG.finditer(text):
        if depth == 0:
            kept.append(text[end : tag.start()])
        depth = max(0, depth - 1) if tag[1] else depth + 1
        end = tag.end()
    kept.append(text[end:] if depth == 0 else "")
    return " ".join(part.strip() for part in kept if part.strip())
