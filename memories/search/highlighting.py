"""The part of a text that answers a search, with the matched words marked. Pure functions."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, takewhile
from typing import NamedTuple, TypeAlias

from django.utils.safestring import SafeString

from memories.chunking import ALPHABETS, IDEOGRAPHS, MARKS, RUN
from memories.search.accents import BARE, DOTS, SPREAD

WINDOW = 280
LEAD = 60
# How far the edge of a snippet may move to fall between two words.
SNAP = 24
# A character of a word in a script with spaces. A word also begins and ends next to a script without spaces.
WORD = rf"(?:(?![{IDEOGRAPHS}{ALPHABETS}])[^\W_]|[{MARKS}])"
# Also inside of camelCase, and between a number and what it counts or the letter before it.
BEGIN = re.compile(
    rf"(?<![^\W_{IDEOGRAPHS}{ALPHABETS}])(?<![{MARKS}])|(?<=[a-z])(?=[A-Z])|(?<=\b[vV])(?=\d)|(?<=\d)(?=[^\W\d_]{{1,3}}\b)"
)
END = re.compile(rf"(?!{WORD})|(?<=\d)(?=[^\W\d_]{{1,3}}\b)")
REST = re.compile(rf"{WORD}*")
REST_OF_NUMBER = re.compile(rf"(?!\d){WORD}*")
# What can separate groups of three digits.
GROUP = "[.,_'’ ]?"
# What can separate the digits of a telephone number, and the least number of digits.
BETWEEN, LONG = "[.,_'’ /()-]{0,3}", 7
# An emoji with its colours, and the others it is one with: a mark inside would take it apart.
WHOLE_EMOJI = re.compile("(?:[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff]|\u200d.)*")
NOT_JOINED = re.compile("(?<!\u200d)")
I_OR_Y = "".join(chr(code) for code in BARE if chr(code).translate(BARE) in "iy")
REST_WITH_Y = re.compile(rf"[iy{I_OR_Y}]{WORD}*", re.IGNORECASE)
INITIALS = re.compile(r"\b[^\W\d_]\.[^\W\d_]\.")
DASHED = re.compile(r"\b[^\W\d_]{1,2}-[^\W\d_]{2}")
ANYTHING, NOTHING = re.compile(""), re.compile("(?!)")
# The Arabic article, with the prefixes that are written together with it.
ARTICLE = re.compile("(?:[وفبك]?ال|و?لل)$")
ZEROS = (0x660, 0x6F0, 0x966, 0x9E6, 0xE50, 0xED0, 0x1040, 0x17E0)
# The letters and signs that `memories_folded` replaces or leaves out, once they are small. Accents too: some stems
# have none, that of Größe is gross.
PLAIN = BARE | str.maketrans("آأإٱىیکёάέήίόύώϊϋΐΰς\u0901", "ااااييكеαεηιουωιυιυσ\u0902")
DIGITS = [(digit, "".join(chr(zero + digit) for zero in ZEROS)) for digit in range(10)]
PLAIN |= {ord(other): str(digit) for digit, others in DIGITS for other in others}
ANY_SCRIPT = str.maketrans({str(digit): f"[{digit}{others}]" for digit, others in DIGITS})
PLAIN |= str.maketrans("\u0958\u0959\u095a\u095b\u095c\u095d\u095e\u095f", "कखगजडढफय")
LEFT_OUT = re.compile(
    "[\u00ad\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u093c]"
)
# Characters that NFKC or a keyboard writes differently: with combining accents or voicing marks, wide, narrow or
# joined.
ODD = re.compile(
    "(?s:.)[\u0300-\u036f\u3099\u309a\uff9e\uff9f]+|[ßæœªº²³\u0e33\u0eb3\u2000-\u2fff\uf900-\uffff\U00010000-\U0010ffff]"
)
# The same as `html.escape`, in one pass.
ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})

Span: TypeAlias = tuple[int, int]
"""Where something begins and ends."""


class Looked(NamedTuple):
    """A text, and where each matched stem is in it."""

    text: str
    places: dict[str, list[Span]]


def snippet(content: str, matched: Sequence[str]) -> SafeString:
    """About 280 characters with as many matched stems as possible, as HTML: words in `<mark>`, the rest escaped."""
    return shown(look(content, matched))


def look(content: str, matched: Sequence[str]) -> Looked:
    text = " ".join(content.split())
    return Looked(text, _places(text, matched) if matched else {})


def shown(looked: Looked) -> SafeString:
    text, found = looked.text, _spans(looked.places)
    if len(text) <= WINDOW:
        return SafeString(_marked(text, 0, len(text), found))
    start, end = _window(text, found)
    inside = [(max(first, start), min(last, end)) for first, last in found if start < last and first < end]
    return SafeString(("… " if start else "") + _marked(text, start, end, inside) + (" …" if end < len(text) else ""))


def _marked(text: str, start: int, end: int, spans: Sequence[Span]) -> str:
    parts = []
    place = start
    for first, last in spans:
        parts += [text[place:first].translate(ESCAPED), "<mark>", text[first:last].translate(ESCAPED), "</mark>"]
        place = last
    return "".join([*parts, text[place:end].translate(ESCAPED)])


def _spans(places: Mapping[str, Sequence[Span]]) -> list[Span]:
    """Where the stems are, in order. Spans that overlap or touch are merged."""
    spans: list[Span] = []
    for start, end in sorted(chain(*places.values())):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        else:
            spans.append((start, end))
    return spans


def _places(text: str, matched: Sequence[str]) -> dict[str, list[Span]]:
    """Whole words that have these stems, and pieces of scripts without spaces wherever they are.

    Stems are looked for one by one, because a pattern of all of them takes longer to compile than the rest of a page.
    """
    letters = _small(text)
    places = {stem: _standing(stem, text, *letters) for stem in matched}
    for stem, signed in _signed(text, matched):
        places[stem] += _standing(signed, text, *letters)
    missing = [stem for stem in matched if not places[stem]]
    if missing and (DOTS.search(letters[0]) or not text.isascii()):
        letters = _bare(*letters)
        places |= {stem: _standing(_bare(*_small(stem))[0], text, *letters) for stem in missing}
    return places


def _standing(stem: str, text: str, small: str, at: Sequence[int]) -> list[Span]:
    """Where this stem is."""
    places = []
    begin, before, after = _parts(stem)
    start = small.find(begin)
    while start >= 0:
        first = at[_with_article(small, start)]
        if before.match(text, first) and (rest := after.match(text, at[start + len(begin)])):
            places.append((first, rest.end()))
        start = small.find(begin, start + 1)
    return places


def _signed(text: str, matched: Sequence[str]) -> list[tuple[str, str]]:
    """Stems with other spellings: UK may be written U.K., and email e-mail."""
    words = [stem for stem in matched if stem.isalpha()]
    dotted = [(stem, ".".join(stem)) for stem in words if 1 < len(stem) < 6] if INITIALS.search(text) else []
    dashed = [(stem, f"{stem[:n]}-{stem[n:]}") for stem in words for n in (1, 2)] if DASHED.search(text) else []
    return [*dotted, *dashed]


def _small(text: str) -> tuple[str, Sequence[int]]:
    """The text in lower case and folded as in the index, and the position of each letter in the text."""
    small = text.lower()
    if len(small) != len(text):  # a few capitals become two letters
        small = "".join(letter.lower()[0] for letter in text)
    if small.isascii():
        return small, range(len(text) + 1)
    return _rewritten(LEFT_OUT, "", small.translate(PLAIN), range(len(text) + 1))


def _bare(small: str, at: Sequence[int]) -> tuple[str, Sequence[int]]:
    """The same with width variants, ligatures and umlauts folded, which changes the number of letters."""
    return _rewritten(DOTS, "", *_rewritten(ODD, _usual, small, at))


def _usual(odd: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", odd[0]).lower().translate(PLAIN).translate(SPREAD)


def _rewritten(
    what: re.Pattern[str], by: str | Callable[[re.Match[str]], str], small: str, at: Sequence[int]
) -> tuple[str, Sequence[int]]:
    """Replace every match, and keep the position of each letter in the text."""
    parts: list[str] = []
    places: list[int] = []
    done = 0
    for match in what.finditer(small):
        instead = by if isinstance(by, str) else by(match)
        parts += [small[done : match.start()], instead]
        places += [*at[done : match.start()], *[at[match.start()]] * len(instead)]
        done = match.end()
    return ("".join([*parts, small[done:]]), [*places, *at[done:]]) if done else (small, at)


def _with_article(small: str, start: int) -> int:
    """Where the word begins, if an Arabic article stands before this stem."""
    article = (
        ARTICLE.search(small, max(start - 3, 0), start) if "\u0621" <= small[start : start + 1] <= "\u064a" else None
    )
    return article.start() if article else start


@lru_cache(maxsize=2048)
def _parts(stem: str) -> tuple[str, re.Pattern[str], re.Pattern[str]]:
    """How a word with this stem begins, a pattern for what is before it, and one for the rest of the word."""
    bare = stem.rstrip("*").lower().translate(PLAIN)
    if not bare:
        return bare, NOTHING, NOTHING
    if RUN.search(bare):
        return bare, ANYTHING, ANYTHING
    if len(bare) == 1 and unicodedata.category(bare) == "So":
        return bare, NOT_JOINED, WHOLE_EMOJI
    if len(bare) < 3 and not stem.endswith("*"):  # “e” of “e-mail” is not every word with e
        return bare, BEGIN, END
    if bare.isdigit() and len(bare) > 3 and not stem.endswith("*"):  # “50000” may be “50,000”
        is_long = len(bare) >= LONG
        first = 1 if is_long else len(bare) % 3 or 3
        size, sign = (1, BETWEEN) if is_long else (3, GROUP)
        groups = "".join(f"{sign}{bare[at : at + size].translate(ANY_SCRIPT)}" for at in range(first, len(bare), size))
        return bare[:first], BEGIN, re.compile(rf"{groups}{REST_OF_NUMBER.pattern}")
    if bare[-1].isdigit() and not stem.endswith("*"):
        return bare, BEGIN, REST_OF_NUMBER
    if bare.endswith("i"):  # the stem of “company” is “compani”
        return bare[:-1], BEGIN, REST_WITH_Y
    return bare, BEGIN, REST


def _window(text: str, spans: Sequence[Span]) -> tuple[int, int]:
    """The start and end of the snippet that shows most of the matched words."""
    start = 0
    if spans:
        best = max(range(len(spans)), key=lambda n: (_seen_from(n, text, spans), -n))
        start = max(0, min(spans[best][0] - LEAD, len(text) - WINDOW))
    end = start + WINDOW
    if start:
        start = _after_space(text, start)
    return start, _before_space(text, end)


def _seen_from(first: int, text: str, spans: Sequence[Span]) -> int:
    """How many different words are visible in a window that begins shortly before this span."""
    last = spans[first][0] - LEAD + WINDOW
    seen = takewhile(lambda span: span[1] <= last, spans[first : first + WINDOW])
    return len({text[start:end].lower() for start, end in seen})


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
