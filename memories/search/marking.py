"""Snippets of hits in which words are marked even if they do not begin like their stems.

The stem of köpeğinin is köpek, that of experiencias is experient, and that of чай is ча. Only PostgreSQL knows which
words have which stem. It is asked once for all hits, and only about texts that do not contain a stem literally.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from django.db import connection
from django.utils.safestring import SafeString

from instances.models import Instance
from memories.chunking import RUN
from memories.search.highlighting import PLAIN, WORD, Looked, Span, look, shown
from memories.search.hybrid import Hit

MOST_WORDS = 1_000
# The configuration that does not stem.
UNSTEMMED = "simple"
# The configuration that transliterates Cyrillic words to Latin stems.
REWRITTEN = "serbian"
SPELT = re.compile(rf"{WORD}+")
STEMS = """
SELECT word, language, tsvector_to_array(to_tsvector(language::regconfig, memories_folded(word)))
FROM unnest((SELECT %(words)s::text[]), (SELECT %(languages)s::text[])) AS asked (word, language)
"""


class Doubtful(NamedTuple):
    """A word of a text that may have one of the stems that were not found in it."""

    looked: Looked
    spelt: tuple[str, str]
    """The word, and the text-search configuration that stems it."""
    span: Span


def snippets(instance: Instance, hits: Sequence[Hit]) -> list[SafeString]:
    """The snippet of each hit of a search in the instance."""
    looked = [look(hit.found.content or (hit.version or hit.memory).content, hit.found.matched) for hit in hits]
    languages = [(hit.origin or instance).language for hit in hits]
    found = (word for each, language in zip(looked, languages, strict=True) for word in _doubtful(each, language))
    doubtful = list(islice(found, MOST_WORDS))
    stems = _stems({word.spelt for word in doubtful}) if doubtful else {}
    for word in doubtful:
        for stem in stems[word.spelt]:
            if stem in word.looked.places:
                word.looked.places[stem].append(word.span)
    return [shown(each) for each in looked]


def _doubtful(looked: Looked, language: str) -> Iterator[Doubtful]:
    """Words that begin with the same letter as a missing stem or contain the rest of it.

    A stem may also come from a tag or a key; then no word of the text has it.
    """
    missing = [stem.translate(PLAIN) for stem, places in looked.places.items() if not places and _is_word(stem)]
    if not missing or language == UNSTEMMED:
        return
    for match in SPELT.finditer(looked.text):
        small = match[0].lower().translate(PLAIN)
        alike = any(small[0] == stem[0] or (len(stem) > 2 and stem[1:] in small) for stem in missing)
        if alike or language == REWRITTEN:
            yield Doubtful(looked, (match[0], language), match.span())


def _is_word(stem: str) -> bool:
    return stem[:1].isalpha() and not stem.endswith("*") and not RUN.search(stem)


def _stems(spelt: set[tuple[str, str]]) -> Mapping[tuple[str, str], Sequence[str]]:
    words, languages = zip(*spelt, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(STEMS, {"words": list(words), "languages": list(languages)})
        return {(word, language): stems for word, language, stems in cursor.fetchall()}
