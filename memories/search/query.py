"""Read what a person typed into the parameters of the search statement.

This reads only the operators: "a phrase", -without, or, and the word that is still being typed. Cutting into words is
left to the database function that cut the chunks, so that both agree. A question has no operators, and neither has a
sentence in a script without spaces: it quotes what it is about, and its dashes are dashes.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

from memories.chunking import ALPHABETS, IDEOGRAPHS, IN_WORD, RUN, pieces

MAX_CHARACTERS = 2000
MAX_REQUIRED = 8
MAX_EXCLUDED = 32
# PostgreSQL refuses to search words of more than 2,046 bytes. Nothing this long is a word.
LONGEST_WORD = 255

JOINERS = "\u200c\u200d"
PHRASE = r'["“„«]([^"“”„«»]+)["”“»]'
# Also excludes @somebody, #something, /a/path and .NET.
WITHOUT = r"(?<!\S)-(?=[@#/.$€£]?\w)"
TERM = re.compile(rf"((?<!\S)-)?{PHRASE}|({WITHOUT})?(\S+)")
JOINT = re.compile(r"[./@:?=&#%~]+|(?<=[a-z])(?=[A-Z])")
COMPOUND = re.compile(rf"[.~]*/[\w-]+/*|[./@:#~]*[\w-]+(?:(?:{JOINT.pattern})[\w-]+)+[./]*")
# Words with signs that the index keeps: C++, C#, AT&T.
SIGNED = re.compile(r"\b[^\W\d_][^\W_]{0,9}(?:\+\+(?!\+)|#(?![\w#]))|(?<![\w=])[^\W\d_]{1,3}&[^\W\d_]{1,3}(?![\w=])")
VERSION = re.compile(r"\bv(?=\d+\.\d)", re.IGNORECASE)
# The Greek question mark looks like a semicolon.
QUESTION = re.compile(r"[?؟፧][\"”“»)]*$|[\u0370-\u03ff][\"”»)]*;$")
# In scripts without spaces a question often ends without a mark, so any text of more than a few words is taken for
# one.
SENTENCE = re.compile(rf"[{IDEOGRAPHS}]{{8}}|[{ALPHABETS}]{{16}}")
EXCLUDED = re.compile(WITHOUT)


class Phrase(NamedTuple):
    """A phrase, split by how it is searched: words in a row, and pieces, already quoted, that must all be there.

    Pieces are parts of runs in scripts without spaces, and words like `C++`.
    """

    words: str
    pieces: tuple[str, ...] = ()
    parts: str = ""
    """The parts of an address, a path, a version or camelCase, if the phrase is one. It also matches a longer one."""


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    """The words to search; none is required."""
    required: tuple[tuple[Phrase, ...], ...] = ()
    """A hit contains at least one phrase of each of these."""
    excluded: tuple[Phrase, ...] = ()
    """A hit contains none of these."""
    prefix: str = ""
    """Beginnings of words, separated by spaces: the word still being typed."""

    @property
    def is_empty(self) -> bool:
        return not self.text

    @property
    def only_excludes(self) -> bool:
        return self.is_empty and bool(self.excluded)

    @property
    def has_conditions(self) -> bool:
        return bool(self.required or self.excluded)


def read_query(raw: str, *, typing: bool = False) -> Query:
    cleaned = _clean(raw)
    if _is_question(cleaned):
        return Query(cleaned)
    # Terms joined by `or` are a group; a group that contains a phrase is a condition.
    groups: list[list[tuple[str, bool]]] = []
    excluded: list[Phrase] = []
    terms = list(TERM.finditer(cleaned))
    joins, ends_with_word = False, False
    for number, match in enumerate(terms):
        phrase, word = match[2], match[4]
        ends_with_word = phrase is None and not match[3]
        if match[1] or match[3]:
            excluded.append(_phrase(phrase or word))
        elif word and word.lower() == "or" and groups and number + 1 < len(terms):
            joins = True
        else:
            groups = groups if joins else [*groups, []]
            groups[-1].append((phrase or word, phrase is not None))
            joins = False
    text = " ".join(term for group in groups for term, _ in group)
    required = [tuple(_phrase(term) for term, _ in group) for group in groups if any(quoted for _, quoted in group)]
    prefix = _prefix(text, typing=typing and ends_with_word and not raw[-1:].isspace())
    return Query(" ".join(text.split()), tuple(required[:MAX_REQUIRED]), tuple(excluded[:MAX_EXCLUDED]), prefix)


def _clean(raw: str) -> str:
    """Fold width variants, drop lone surrogates, and replace control characters except those that are parts of words.

    Punctuation alone becomes an empty query: no memory is about it, and the vector of a full stop is near to anything.
    """
    text = unicodedata.normalize("NFKC", raw.encode("utf-8", "ignore").decode())
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c in JOINERS else " " for c in text)
    text = " ".join(text.split())[:MAX_CHARACTERS]
    return text if re.search(r"[^\W_]", text) or any(unicodedata.category(c) == "So" for c in text) else ""


def _is_question(text: str) -> bool:
    """Whether it ends like a question or is a sentence. A phrase with nothing around it is neither."""
    around = re.sub(PHRASE, " ", text)
    is_sentence = SENTENCE.search(around) and not EXCLUDED.search(around)
    return bool(re.search(r"\w", around) and (QUESTION.search(text) or is_sentence))


def _phrase(text: str) -> Phrase:
    found = [piece for run in RUN.findall(text.lower()) for piece in pieces(run)]
    # A single character matches as the beginning of a piece.
    spelt = [f"'{piece}'" if len(piece) > 1 else f"'{piece}':*" for piece in found]
    spelt += [f"'{word}'" for word in SIGNED.findall(text.lower())]
    # As in the index, a dash before a number is no sign, and the v of a version is none of its parts.
    words = re.sub(r"(?<=[^\W_])-(?=\d)", " ", RUN.sub(" ", text)).strip()
    is_compound = not spelt and COMPOUND.fullmatch(words)
    parts = JOINT.sub(" ", VERSION.sub("", words)).strip() if is_compound else ""
    return Phrase(words, tuple(dict.fromkeys(spelt)), parts)


def _prefix(text: str, *, typing: bool) -> str:
    if re.fullmatch(f"[{IDEOGRAPHS}]", text):
        return text  # a single character is the beginning of a pair
    last = re.search(rf"{IN_WORD}{{2,}}$", text)
    if not typing or not last or len(last[0]) > LONGEST_WORD:
        return ""
    return "" if RUN.search(last[0]) else last[0].lower()
