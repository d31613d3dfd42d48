"""Words without their accents, as they are typed where the keyboard has none. Pure functions."""

import re
import unicodedata

ACCENTED = [*range(0xC0, 0x250), *range(0x1E00, 0x1F00)]
# The last are letters of their own.
BARE = {code: unicodedata.normalize("NFD", chr(code))[0] for code in ACCENTED} | str.maketrans("đıøł", "diol")
# Two letters in one.
SPREAD = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe"})
DOTTED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
# What stands for the two dots of ä, ö and ü where these cannot be typed.
DOTS = re.compile("(?<=[aou])e")


def bare(word: str) -> str:
    """The same for Müller, Mueller and Muller."""
    return DOTS.sub("", word.translate(SPREAD).translate(BARE))


def typed_otherwise(word: str) -> list[str]:
    """Without its accents, or with other letters for them; nothing if it has none."""
    plain = word.translate(SPREAD)
    return [] if word.isascii() else sorted({plain.translate(BARE), plain.translate(DOTTED).translate(BARE)} - {word})
