"""Words without their accents, as people type them on keyboards that have none. Pure functions."""

import re
import unicodedata

ACCENTED = [*range(0xC0, 0x250), *range(0x1E00, 0x1F00)]
# đ, ı, ø and ł have no decomposition in Unicode.
BARE = {code: unicodedata.normalize("NFD", chr(code))[0] for code in ACCENTED} | str.maketrans("đıøł", "diol")
# Letters that are also typed as two.
SPREAD = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe"})
DOTTED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
# The e that replaces the dots of ä, ö and ü.
DOTS = re.compile("(?<=[aou])e")


def bare(word: str) -> str:
    """The same for Müller, Mueller and Muller."""
    return DOTS.sub("", word.translate(SPREAD).translate(BARE))


def typed_otherwise(word: str) -> list[str]:
    """Its spellings without accents, or with other letters instead; none if it has no accents."""
    plain = word.translate(SPREAD)
    return [] if word.isascii() else sorted({plain.translate(BARE), plain.translate(DOTTED).translate(BARE)} - {word})
