"""An embedder that needs no key, no model and no network: words and character n-grams hashed into 384 dimensions.

Two texts are near when they share words or pieces of words (inflections, typos, compounds, runs of Chinese). That is
likeness of letters, not of meaning; what it adds to keyword search is tolerance.

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

# Scripts written without spaces: words cannot be cut out, so pairs of ideographs or threes of letters stand for them.
_PIECE = re.compile(rf"[{IDEOGRAPHS}]+|[{ALPHABETS}]+|{WORD.pattern}")
_IS_IDEOGRAPHS = re.compile(rf"[{IDEOGRAPHS}]")
_IS_ALPHABET = re.compile(rf"[{ALPHABETS}]")

# Short words are mostly grammar in every alphabetic language; weighing by length needs no stop-word list per language.
_LENGTH_WEIGHT = (0.0, 0.1, 0.2, 0.45, 0.8)
_WORD, _GRAM, _PAIR, _SINGLE = 1.0, 0.7, 1.0, 0.2
_SIGNS = tuple(tuple(1.0 if crc32(b"%d.%d" % (turn, i)) & 1 else -1.0 for i in range(DIMENSIONS)) for turn in range(3))
_STEPS = 4
_GROWTH = math.sqrt(2) ** (_STEPS * len(_SIGNS))

# Remembering a piece costs about 100 bytes a letter: long ones, which are seldom seen twice, are not kept.
_REMEMBERED = 8_000
_REMEMBERED_LENGTH = 32


def embed(text: str) -> list[float]:
    """A unit vector of 1536 numbers, of which the first 384 carry the text; a blank text gets one like any other."""
    vector = _sum(_pieces(text))
    norm = math.hypot(*vector)
    if not norm:
        vector[crc32(text.encode(errors="surrogatepass")) % DIMENSIONS] = norm = 1.0
    return [x / (norm * _GROWTH) for x in _mix(vector)] + [0.0] * (PADDED - DIMENSIONS)


def _pieces(text: str) -> Counter[str]:
    """Words, or what stands for them; a text of nothing but signs and emoji is taken as it is written."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return Counter(_PIECE.findall(folded)) or Counter(folded.split())


def _sum(pieces: Counter[str]) -> list[float]:
    vector = [0.0] * DIMENSIONS
    for piece, count in pieces.items():
        times = 1.0 + math.log(count)
        for cell, weight in _remembered(piece) if len(piece) <= _REMEMBERED_LENGTH else _hashed(piece):
            vector[cell] += times * weight
    return vector


def _hashed(piece: str) -> tuple[tuple[int, float], ...]:
    """The piece's own sparse vector as (dimension, signed weight); each feature lands in two dimensions."""
    cells: dict[int, float] = {}
    for name, weight in _features(piece):
        h = crc32(name.encode(errors="surrogatepass"))
        for part in (h & 0xFFFF, h >> 16):
            cell, sign = (part >> 1) % DIMENSIONS, 1.0 if part & 1 else -1.0
            cells[cell] = cells.get(cell, 0.0) + sign * weight
    return tuple(cells.items())


_remembered = lru_cache(maxsize=_REMEMBERED)(_hashed)


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
    """A fixed rotation: every cosine stays as it was, but the weight of few words spreads over all 384 dimensions.

    Without it most dimensions of a short text are zero, and the sign of a dimension (binary quantisation) says nothing.
    """
    for signs in _SIGNS:
        vector = [x * s for x, s in zip(vector, signs, strict=True)]
        for _ in range(_STEPS):
            even, odd = vector[::2], vector[1::2]
            vector = [x + y for x, y in zip(even, odd, strict=True)] + [x - y for x, y in zip(even, odd, strict=True)]
    return vector
