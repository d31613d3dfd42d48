"""What changed between two texts, word by word.

The work is bounded: long texts are compared by sentences first, and by words only where the sentences differ. Parts
that are too long and too different to compare in time are shown as removed and added as a whole.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

from memories.chunking import MARKS

Kind = Literal["same", "removed", "added"]

# Scripts without spaces between words: each character is compared as a word.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # kana and ideographs
)
WORD = re.compile(rf"\s+|[{UNSPACED}]|(?:(?![{UNSPACED}])[\w{MARKS}])+|[^\w\s]")
SENTENCE = re.compile(r"[^.!?。！？\n]*(?:[.!?。！？\n]+\s*|$)")
# The most pairs of words or sentences that one comparison may look at, and that all of them may look at together.
MOST_PAIRS = 250_000
MOST_ALTOGETHER = 2_000_000


@dataclass(frozen=True, slots=True)
class Segment:
    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Diff:
    segments: Sequence[Segment]

    @property
    def before(self) -> list[Segment]:
        """The old text, with what was removed from it."""
        return [segment for segment in self.segments if segment.kind != "added"]

    @property
    def after(self) -> list[Segment]:
        """The new text, with what was added to it."""
        return [segment for segment in self.segments if segment.kind != "removed"]


def diff(old: str, new: str) -> Diff:
    old_words, new_words = WORD.findall(old), WORD.findall(new)
    if len(old_words) * len(new_words) <= MOST_PAIRS:
        return Diff(_merged(_compare(old_words, new_words)))
    return Diff(_merged(_by_sentences(old, new)))


def _by_sentences(old: str, new: str) -> Iterator[Segment]:
    left = MOST_ALTOGETHER
    for a, b in _blocks(SENTENCE.findall(old), SENTENCE.findall(new)):
        if a == b:
            yield Segment("same", "".join(a))
            continue
        old_words, new_words = WORD.findall("".join(a)), WORD.findall("".join(b))
        left -= len(old_words) * len(new_words)
        yield from _compare(old_words, new_words) if left > 0 else _replaced(old_words, new_words)


def _compare(a: Sequence[str], b: Sequence[str]) -> Iterator[Segment]:
    for old, new in _blocks(a, b):
        if old == new:
            yield Segment("same", "".join(old))
        else:
            yield from _replaced(old, new)


def _replaced(old: Sequence[str], new: Sequence[str]) -> Iterator[Segment]:
    yield Segment("removed", "".join(old))
    yield Segment("added", "".join(new))


def _blocks(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Both texts side by side, in parts that are equal or different. A common beginning and end are cut off first."""
    start = _common(a, b)
    end = _common(a[start:][::-1], b[start:][::-1])
    yield a[:start], b[:start]
    middle_a, middle_b = a[start : len(a) - end], b[start : len(b) - end]
    if len(middle_a) * len(middle_b) > MOST_PAIRS:
        yield middle_a, middle_b
    else:
        # Do not match two places by white space alone.
        matcher = SequenceMatcher(str.isspace, middle_a, middle_b)
        for _, i, j, k, n in matcher.get_opcodes():
            yield middle_a[i:j], middle_b[k:n]
    yield a[len(a) - end :], b[len(b) - end :]


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _merged(segments: Iterable[Segment]) -> list[Segment]:
    """Join neighbours of one kind; between two equal parts, put all that was removed before all that was added."""
    found: list[Segment] = []
    for is_same, run in groupby(segments, key=lambda segment: segment.kind == "same"):
        parts = list(run)
        kinds: tuple[Kind, ...] = ("same",) if is_same else ("removed", "added")
        for kind in kinds:
            if text := "".join(part.text for part in parts if part.kind == kind):
                found.append(Segment(kind, text))
    return found
