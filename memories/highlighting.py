"""The part of a text that answers a search, with the words that were found marked. Pure functions."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from itertools import takewhile

from django.utils.safestring import SafeString

from memories.chunking import MARKS, RUN

WINDOW = 280
LEAD = 60
# A cut may move this far to fall between two words.
SNAP = 24
WORD = rf"(?:[^\W_]|[{MARKS}])"
# Also inside of camelCase.
BEGIN = rf"(?:(?<!{WORD})|(?-i:(?<=[a-z])(?=[A-Z])))"


@dataclass(frozen=True, slots=True)
class Span:
    start: int
    end: int


def snippet(content: str, matched: Sequence[str]) -> SafeString:
    """About 280 characters around most of the matched stems, as HTML: words in `<mark>`, everything else escaped."""
    text = " ".join(content.split())
    found = list(_spans(text, matched)) if matched else []
    if not found and len(text) <= WINDOW:
        return SafeString(escape(text))
    start, end = _window(text, found)
    inside = [
        Span(max(span.start, start), min(span.end, end)) for span in found if start < span.end and span.start < end
    ]
    return SafeString(("… " if start else "") + _marked(text, start, end, inside) + (" …" if end < len(text) else ""))


def _marked(text: str, start: int, end: int, spans: Sequence[Span]) -> str:
    parts = []
    place = start
    for span in spans:
        parts += [escape(text[place : span.start]), "<mark>", escape(text[span.start : span.end]), "</mark>"]
        place = span.end
    return "".join([*parts, escape(text[place:end])])


def _spans(text: str, matched: Sequence[str]) -> Iterator[Span]:
    """Where the stems are, in order; what overlaps or touches is one."""
    stems = tuple(stem for stem in matched if stem.rstrip("*"))
    places = sorted(place for pattern in _patterns(stems) for place in _places(pattern, text))
    current: Span | None = None
    for start, end in places:
        if current and start <= current.end:
            current = Span(current.start, max(current.end, end))
            continue
        if current:
            yield current
        current = Span(start, end)
    if current:
        yield current


def _places(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    return (match.span(1) for match in pattern.finditer(text))


@lru_cache(maxsize=2048)
def _patterns(stems: tuple[str, ...]) -> list[re.Pattern[str]]:
    """Words are marked from their beginning to their end; pieces of scripts without spaces wherever they stand.

    Remembered, because the hits of one search found much the same words, and compiling costs more than finding.
    """
    longest_first = sorted(set(stems), key=lambda stem: (-len(stem), stem))
    words = [_word(stem) for stem in longest_first if not RUN.search(stem)]
    pieces = [re.escape(stem.rstrip("*")) for stem in longest_first if RUN.search(stem)]
    patterns = []
    if words:
        patterns.append(re.compile(rf"{BEGIN}({'|'.join(words)})", re.IGNORECASE))
    if pieces:
        patterns.append(re.compile(f"(?=({'|'.join(pieces)}))", re.IGNORECASE))
    return patterns


def _word(stem: str) -> str:
    """The stem and the rest of its word. Very short stems stand alone: “e” of “e-mail” is not every word with e."""
    bare = stem.rstrip("*")
    if len(bare) < 3 and bare == stem:
        return rf"{re.escape(bare)}(?!{WORD})"
    if bare[-1].isdigit() and bare == stem:
        return rf"{re.escape(bare)}(?!\d){WORD}*"
    if bare.endswith("i"):  # the stem of “company” is “compani”
        return f"{re.escape(bare[:-1])}[iy]{WORD}*"
    return f"{re.escape(bare)}{WORD}*"


def _window(text: str, spans: Sequence[Span]) -> tuple[int, int]:
    """Where to begin and end so that most of the words that were found can be seen."""
    if len(text) <= WINDOW:
        return 0, len(text)
    start = 0
    if spans:
        best = max(range(len(spans)), key=lambda n: (_seen_from(n, text, spans), -n))
        start = max(0, min(spans[best].start - LEAD, len(text) - WINDOW))
    end = start + WINDOW
    if start:
        start = _after_space(text, start)
    return start, _before_space(text, end)


def _seen_from(first: int, text: str, spans: Sequence[Span]) -> int:
    """How many different words a window shows that begins shortly before this one."""
    last = spans[first].start - LEAD + WINDOW
    seen = takewhile(lambda span: span.end <= last, spans[first : first + WINDOW])
    return len({text[span.start : span.end].lower() for span in seen})


def _after_space(text: str, start: int) -> int:
    if text[start - 1] == " ":
        return start
    space = text.find(" ", start, start + SNAP)
    return space + 1 if space >= 0 else start


def _before_space(text: str, end: int) -> int:
    if end >= len(text) or text[end] == " ":
        return min(end, len(text))
    space = text.rfind(" ", end - SNAP, end)
    return space if space >= 0 else end
