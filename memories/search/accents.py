"""Words without their accents, as they are typed where the keyboard has none."""

import re
import unicodedata

ACCENTED = [*range(0xC0, 0x250), *range(0x1E00, 0x1F00)]
# The last are letters of their own.
BARE = {code: unicodedata.normalize("NFD", chr(code))[0] for code in ACCENTED} | str.maketrans("đıøł", "diol")
# Two letters in one.
SPREAD = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe"})
# What stands for the two dots of ä, ö and ü where these cannot be typed.
DOTS = re.compile("(?<=[aou])e")
