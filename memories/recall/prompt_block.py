"""The block that goes into a prompt: one line per memory, grouped by role, within a budget of tokens.

Pure functions. What is said inside is data: nothing in it can end the block, begin a line or look like a label of ours.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

OPENING, CLOSING = "<memory-context>", "</memory-context>"
LABELS = ("IDENTITY", "LESSON", "DECISION", "CONTEXT", "REFERENCE", "HISTORICAL", "PROCEDURE", "SUMMARY")
BYTES_PER_TOKEN = 3

_TAG = re.compile(r"<(/?)\s*memory-context\b[^>]*>?", re.IGNORECASE)
_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
# What nobody sees: places to break a word, signs that turn the direction of writing, byte order marks, and the "tag"
# letters and variants that hide whole texts. Joiners stay, which words of some languages need.
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e0fff]"
)
_JOINED = "[\u200c\u200d]*"
_LABEL = re.compile(rf"\[[\s\u200c\u200d]*({'|'.join(map(_JOINED.join, LABELS))})[\s\u200c\u200d]*\]", re.IGNORECASE)
# Most texts have nothing of all that, and are left alone. Some of what nobody sees is printable to Python.
_SUSPICIOUS = re.compile("[<>&\\[\u034f\U000e0100-\U000e01ef]|  |^ | $")
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_BRACKETS = str.maketrans("[]", "()")


class Wording(NamedTuple):
    """One way of saying an entry: whole, shortened, or the part that was found."""

    form: str
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that may go into the block; of its wordings the first that fits is used."""

    id: UUID
    label: str
    name: str
    wordings: Sequence[Wording]
    order: int = 0
    """Among those of the same label."""


class Turn(NamedTuple):
    """Entries that are placed now, as far as `share` of the room left at this moment goes."""

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
    """On the safe side, for any tokenizer: a token is rarely shorter than three bytes."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def compose(turns: Sequence[Turn], budget: int) -> Block:
    """Whoever's turn comes earlier gets room first; in the block entries stand by label, then in their own order."""
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
    return rendered({id: one for id, (_, one) in ordered.items()})


def rendered(placed: Mapping[UUID, Placed]) -> Block:
    return Block("\n".join([OPENING, *(one.line for one in placed.values()), CLOSING]), placed)


def _fitting(entry: Entry, room: int) -> Placed | None:
    for form, text in entry.wordings:
        # Much longer than the room: not worth escaping to find out.
        if len(text) <= room * 4 and _size(line := line_for(entry, text)) <= room:
            return Placed(line, form)
    return None


def _size(line: str) -> int:
    return len(line.encode()) + 1


def line_for(entry: Entry, text: str) -> str:
    return f"[{entry.label}] [{_said(entry.name).translate(_BRACKETS)}]: {_said(text)}"


def _said(text: str) -> str:
    """On one line, without markup, and without anything that reads like a label."""
    if text.isprintable() and not _SUSPICIOUS.search(text):
        return text
    flat = _SPACE.sub(" ", _HIDDEN.sub("", text)).strip()
    return _LABEL.sub(r"(\1)", flat.translate(_MARKUP))


def short_name(id: UUID) -> str:
    """For what has no key: the end of its id, where ids made in the same moment differ."""
    return id.hex[-8:]


def without_blocks(text: str) -> str:
    """What somebody said, without the memories that were put into it: recalling or learning those again is circular.

    Also when a block was never closed, or stands in another one.
    """
    kept, depth, end = [], 0, 0
    for tag in _TAG.finditer(text):
        if depth == 0:
            kept.append(text[end : tag.start()])
        depth = max(0, depth - 1) if tag[1] else depth + 1
        end = tag.end()
    kept.append(text[end:] if depth == 0 else "")
    return " ".join(part.strip() for part in kept if part.strip())
