"""What a person typed, as the search statement takes it.

Words are cut in the database by the function that also cut the chunks, so both sides always agree; here only the
operators are read: "a phrase", -without, or, and the word that is still being typed. A question has none, nor has a
sentence of a script without spaces: it quotes what it is about, and its dashes are dashes.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

from memories.chunking import ALPHABETS, IDEOGRAPHS, IN_WORD, RUN, pieces

MAX_CHARACTERS = 2000
MAX_REQUIRED = 8
MAX_EXCLUDED = 32
# PostgreSQL refuses to look for words of more than 2,046 bytes; what is near that is no word anyway.
LONGEST_WORD = 255

JOINERS = "\u200c\u200d"
PHRASE = r'["“„«]([^"“”„«»]+)["”“»]'
# Also before @somebody, #something, /a/path and .NET.
WITHOUT = r"(?<!\S)-(?=[@#/.$€£]?\w)"
TERM = re.compile(rf"((?<!\S)-)?{PHRASE}|({WITHOUT})?(\S+)")
JOINT = re.compile(r"[./@:?=&#%~]+|(?<=[a-z])(?=[A-Z])")
COMPOUND = re.compile(rf"[.~]*/[\w-]+/*|[./@:#~]*[\w-]+(?:(?:{JOINT.pattern})[\w-]+)+[./]*")
# As the index has them: the sign is what tells C++ from C.
SIGNED = re.compile(r"\b[^\W\d_][^\W_]{0,9}(?:\+\+(?!\+)|#(?![\w#]))|(?<![\w=])[^\W\d_]{1,3}&[^\W\d_]{1,3}(?![\w=])")
VERSION = re.compile(r"\bv(?=\d+\.\d)", re.IGNORECASE)
# Greek asks with what is a semicolon elsewhere.
QUESTION = re.compile(r"[?؟፧][\"”“»)]*$|[\u0370-\u03ff][\"”»)]*;$")
# Where there are no spaces a question often ends like any sentence, but what is more than a few words is one.
SENTENCE = re.compile(rf"[{IDEOGRAPHS}]{{8}}|[{ALPHABETS}]{{16}}")
EXCLUDED = re.compile(WITHOUT)


class Phrase(NamedTuple):
    """Words in a row; as a text-search query spells them, runs of scripts without spaces as their pieces, and `C++`."""

    words: str
    pieces: tuple[str, ...] = ()
    parts: str = ""
    """What an address, a path, a version or camelCase consists of, when the phrase is one; it may be part of a longer
    one."""


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    """Every word counts, none is required."""
    required: tuple[tuple[Phrase, ...], ...] = ()
    """A hit says at least one phrase of each of these."""
    excluded: tuple[Phrase, ...] = ()
    """A hit says none of these."""
    prefix: str = ""
    """The word still being typed, matched from its beginning; several with spaces between them."""

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
    # Each group is what stands between two `or`s; a group with a phrase in it is a condition.
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
    text = " ".join(said for group in groups for said, _ in group)
    required = [tuple(_phrase(said) for said, _ in group) for group in groups if any(quoted for _, quoted in group)]
    prefix = _prefix(text, typing=typing and ends_with_word and not raw[-1:].isspace())
    return Query(" ".join(text.split()), tuple(required[:MAX_REQUIRED]), tuple(excluded[:MAX_EXCLUDED]), prefix)


def _clean(raw: str) -> str:
    """Controls become spaces, but for those that belong to words; lone surrogates go, width variants are folded.

    Signs alone are nothing: no memory is about them, and the vector of a full stop is near to anything.
    """
    text = unicodedata.normalize("NFKC", raw.encode("utf-8", "ignore").decode())
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c in JOINERS else " " for c in text)
    text = " ".join(text.split())[:MAX_CHARACTERS]
    return text if re.search(r"[^\W_]", text) or any(unicodedata.category(c) == "So" for c in text) else ""


def _is_question(text: str) -> bool:
    """Ends like one or is a sentence, and not all of it is a phrase to look for."""
    around = re.sub(PHRASE, " ", text)
    is_sentence = SENTENCE.search(around) and not EXCLUDED.search(around)
    return bool(re.search(r"\w", around) and (QUESTION.search(text) or is_sentence))


def _phrase(said: str) -> Phrase:
    found = [piece for run in RUN.findall(said.lower()) for piece in pieces(run)]
    # A single character is only the beginning of a piece.
    spelt = [f"'{piece}'" if len(piece) > 1 else f"'{piece}':*" for piece in found]
    spelt += [f"'{word}'" for word in SIGNED.findall(said.lower())]
    # As the index has it: a dash before a number is no sign, and among the parts of a version there is no letter.
    words = re.sub(r"(?<=[^\W_])-(?=\d)", " ", RUN.sub(" ", said)).strip()
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
