"""Splitting a memory into chunks, counting words, and recognising the speaker and date at its beginning."""

import re
from datetime import datetime
from functools import cache

from semantic_text_splitter import TextSplitter

# About 400 tokens with 80 of overlap, at four characters a token.
CAPACITY = 1600
OVERLAP = 320

# Includes the iteration marks that repeat an ideograph, excludes the dot between two names.
KANA = "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
IDEOGRAPHS = f"{KANA}\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
ALPHABETS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
RUN = re.compile(f"[{IDEOGRAPHS}]+|[{ALPHABETS}]+")
# Combining vowel signs, points and accents: part of a word, but not matched by Python's `\w`.
MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0971-\u0dff"
IN_WORD = rf"(?:[^\W_]|[{MARKS}])"
LETTERS = rf"[^\W_{ALPHABETS}{IDEOGRAPHS}]"
WORD = re.compile(rf"{LETTERS}+(?:[{MARKS}]+{LETTERS}*)*")

# "Name: text", perhaps after a time in brackets. A name has at most three words and starts with a letter.
# A full-width colon needs no space after it; before one, a name has at most eight characters.
NAMED = rf"[\w{MARKS}.'’-]"
NAME = rf"[^\W\d_](?:{NAMED}*(?: {NAMED}+){{0,2}}(?=:\s)|{NAMED}{{0,7}}(?=：))"
SPEAKER = re.compile(rf"^\s*(\[[^\]\n]{{0,60}}\]\s*)?({NAME})")


@cache
def _splitter() -> TextSplitter:
    return TextSplitter((CAPACITY - OVERLAP, CAPACITY), overlap=OVERLAP)


def split(content: str) -> list[str]:
    """Split at paragraphs, or else at sentences or words. Most memories are one chunk."""
    return [content] if len(content) <= CAPACITY else _splitter().chunks(content)


def speaker(content: str) -> str:
    match = SPEAKER.match(content)
    return match[2] if match else ""


def undated(content: str) -> str:
    """The text without the time in brackets at its beginning."""
    match = SPEAKER.match(content)
    return content[match.end(1) :] if match and re.search(r"\d", match[1] or "") else content


def day_in_words(moment: datetime) -> str:
    """`8 May 2023, Monday`: the words that questions use."""
    return f"{moment.day} {moment:%B %Y, %A}"


def pieces(run: str) -> list[str]:
    """The n-grams that the database makes of text in a script without spaces, except for the last single character."""
    size = 2 if re.match(f"[{IDEOGRAPHS}]", run) else 3
    return [run[i : i + size] for i in range(max(1, len(run) - size + 1))]


def word_count(text: str) -> int:
    words = len(WORD.findall(text))
    return words if text.isascii() else words + sum(len(pieces(run)) for run in RUN.findall(text))
