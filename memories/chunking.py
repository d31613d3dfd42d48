"""Cutting a memory into the pieces that are searched, and reading who said it and when."""

import re
from datetime import datetime
from functools import cache

from semantic_text_splitter import TextSplitter

# About 400 tokens with 80 of overlap, at four characters a token.
CAPACITY = 1600
OVERLAP = 320

# With the marks that repeat an ideograph, without the dot between two names.
KANA = "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
IDEOGRAPHS = f"{KANA}\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
ALPHABETS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
RUN = re.compile(f"[{IDEOGRAPHS}]+|[{ALPHABETS}]+")
# Vowel signs, points and accents that stand on their own belong to the word, but Python's `\w` does not know them.
MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0971-\u0dff"
IN_WORD = rf"(?:[^\W_]|[{MARKS}])"
LETTERS = rf"[^\W_{ALPHABETS}{IDEOGRAPHS}]"
WORD = re.compile(rf"{LETTERS}+(?:[{MARKS}]+{LETTERS}*)*")

# "Name: what was said", perhaps after a time in brackets. At most three words, the first starting with a letter. A wide
# colon needs no space, but where words have none between them a name is short.
NAMED = rf"[\w{MARKS}.'’-]"
NAME = rf"[^\W\d_](?:{NAMED}*(?: {NAMED}+){{0,2}}(?=:\s)|{NAMED}{{0,7}}(?=：))"
SPEAKER = re.compile(rf"^\s*(\[[^\]\n]{{0,60}}\]\s*)?({NAME})")


@cache
def _splitter() -> TextSplitter:
    return TextSplitter((CAPACITY - OVERLAP, CAPACITY), overlap=OVERLAP)


def split(content: str) -> list[str]:
    """At paragraphs, else at sentences, else at words; most memories are one piece."""
    return [content] if len(content) <= CAPACITY else _splitter().chunks(content)


def speaker(content: str) -> str:
    match = SPEAKER.match(content)
    return match[2] if match else ""


def undated(content: str) -> str:
    """What was said, without the time in brackets before who said it."""
    match = SPEAKER.match(content)
    return content[match.end(1) :] if match and re.search(r"\d", match[1] or "") else content


def day_in_words(moment: datetime) -> str:
    """`8 May 2023, Monday`: the way questions ask for it."""
    return f"{moment.day} {moment:%B %Y, %A}"


def pieces(run: str) -> list[str]:
    """What the database makes of a run of a script without spaces, without the last single character."""
    size = 2 if re.match(f"[{IDEOGRAPHS}]", run) else 3
    return [run[i : i + size] for i in range(max(1, len(run) - size + 1))]


def word_count(text: str) -> int:
    words = len(WORD.findall(text))
    return words if text.isascii() else words + sum(len(pieces(run)) for run in RUN.findall(text))
