"""An embedder that needs no key, no model and no network: words and character n-grams hashed into 384 dimensions.

Two texts are near if they share words or parts of words (inflections, typos, compounds, runs of Chinese). That compares
spelling, not meaning; what it adds to keyword search is tolerance.

The same text gives the same vector in every process and on every machine (CRC-32, not `hash()`).
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from zlib import crc32

from memories.chunking import ALPHABETS, IDEOGRAPHS, WORD

MODEL = "offline-hash-1"
DIMENSIONS = 384
PADDED = 1536

# Scripts without spaces have no words to cut out: pairs of ideographs or triples of letters are used instead.
_PIECE = re.compile(rf"[{IDEOGRAPHS}]+|[{ALPHABETS}]+|{WORD.pattern}")
_IS_IDEOGRAPHS = re.compile(rf"[{IDEOGRAPHS}]")
_IS_ALPHABET = re.compile(rf"[{ALPHABETS}]")

# Short words are mostly grammar in every alphabetic language. Weights by length make stop-word lists unnecessary.
_LENGTH_WEIGHT = (0.0, 0.1, 0.2, 0.45, 0.8)
_WORD, _GRAM, _PAIR, _SINGLE = 1.0, 0.7, 1.0, 0.2
_SIGNS = tuple(tuple(1.0 if crc32(b"%d.%d" % (turn, i)) & 1 else -1.0 for i in range(DIMENSIONS)) for turn in range(3))
_STEPS = 4
_GROWTH = math.sqrt(2) ** (_STEPS * len(_SIGNS))

# Caching a piece takes about 100 bytes a letter. Long ones rarely come twice and are not cached.
_CACHED = 8_000
_CACHED_LENGTH = 32


def embed(text: str) -> list[float]:
    """A unit vector of 1536 numbers: the first 384 encode the text, the rest are zero. A blank text gets one too."""
    vector = _sum(_pieces(text))
    norm = math.hypot(*vector)
    if not norm:
        vector[crc32(text.encode(errors="surrogatepass")) % DIMENSIONS] = norm = 1.0
    return [x / (norm * _GROWTH) for x in _mix(vector)] + [0.0] * (PADDED - DIMENSIONS)


def _pieces(text: str) -> Counter[str]:
    """The words of a text, or runs of letters without spaces. A text of signs and emoji alone is split at spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return Counter(_PIECE.findall(folded)) or Counter(folded.split())


def _sum(pieces: Counter[str]) -> list[float]:
    vector = [0.0] * DIMENSIONS
    for piece, count in pieces.items():
        times = 1.0 + math.log(count)
        for cell, weight in _cached_cells(piece) if len(piece) <= _CACHED_LENGTH else _cells(piece):
            vector[cell] += times * weight
    return vector


def _cells(piece: str) -> tuple[tuple[int, float], ...]:
    """The sparse vector of a piece as (dimension, signed weight). Each feature is hashed into two dimensions."""
    cells: dict[int, float] = {}
    for name, weight in _features(piece):
        h = crc32(name.encode(errors="surrogatepass"))
        for part in (h & 0xFFFF, h >> 16):
            cell, sign = (part >> 1) % DIMENSIONS, 1.0 if part & 1 else -1.0
            cells[cell] = cells.get(cell, 0.0) + sign * weight
    return tuple(cells.items())


_cached_cells = lru_cache(maxsize=_CACHED)(_cells)


def _features(piece: str) -> Iterator[tuple[str, float]]:
    if _IS_ALPHABET.match(piece):
        for i in range(max(1, len(piece) - 2)):
            yield "p" + piece[i : i + 3], _PAIR
    elif _IS_IDEOGRAPHS.match(piece):
        for i in range(len(piece) - 1):
            yield "p" + piece[i : i + 2], _PAIR
        for character in piece:
            yield "s" + character, _SINGLE
    else:
        yield from _features_of_word(piece)


def _features_of_word(word: str) -> Iterator[tuple[str, float]]:
    is_short = len(word) < len(_LENGTH_WEIGHT) and not word.isdigit()
    weight = _LENGTH_WEIGHT[len(word)] if is_short else 1.0
    yield "w" + word, weight * _WORD
    if len(word) > 3:
        padded = f"<{word}>"
        grams = [padded[i : i + n] for n in (3, 4) for i in range(len(padded) - n + 1)]
        share = weight * _GRAM / math.sqrt(len(grams))
        for gram in grams:
            yield "g" + gram, share


def _mix(vector: list[float]) -> list[float]:
    """Rotate the vector, always in the same way: cosines do not change, but few words fill all 384 dimensions.

    Without it most dimensions of a short text are zero, and their signs (binary quantisation) say nothing.
    """
    for signs in _SIGNS:
        vector = [x * s for x, s in zip(vector, signs, strict=True)]
        for _ in range(_STEPS):
            even, odd = vector[::2], vector[1::2]
            vector = [x + y for x, y in zip(even, odd, strict=True)] + [x - y for x, y in zip(even, odd, strict=True)]
    return vector
