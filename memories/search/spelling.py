"""Correct the words of a query that appear in no memory.

Longer words that begin with such a word are looked up in the index. Other corrections are looked for among the words of
the newest chunks that the reader may see: they are fetched as one text and compared in Python (`likeness.py`), which
takes a tenth of the time that PostgreSQL needs for it.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from time import monotonic
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from accounts.access import Scope
from memories.chunking import IN_WORD
from memories.search.accents import typed_otherwise
from memories.search.likeness import KnownStems, UnknownWord
from memories.search.query import LONGEST_WORD, Phrase, Query
from memories.search.words_sql import quoted

MOST_WORDS = 8
# The newest chunks that may be read, up to this many chunks or words, among at most LOOKED_AT of the newest.
SAMPLE = 1_000
SAMPLED_WORDS = 20_000
LOOKED_AT = 4 * SAMPLE
# The pieces of scripts without spaces, the only words without a position, are not corrected. A chunk of more words than
# this is mostly pieces.
NO_PIECES = "ts_filter(words, '{a,b,c,d}')"
MOST_IN_CHUNK = 400
# How long a sample is kept at most, and how many are: each may take 3 MB.
SECONDS, MOST_SAMPLES = 60, 8
SAID = re.compile(rf"{IN_WORD}{{3,}}")
HALVES = re.compile(rf"(?:(?!\d){IN_WORD})+|\d+")


@dataclass(frozen=True, slots=True)
class Corrections:
    """What to search instead of words that appear nowhere."""

    replaced: Mapping[str, Sequence[str]] = field(default_factory=dict)
    beginnings: Sequence[str] = ()
    """Words that only longer words begin with; those are searched."""

    @property
    def shown(self) -> dict[str, str]:
        return {word: ", ".join(meant) for word, meant in self.replaced.items()} | {w: f"{w}…" for w in self.beginnings}


# Words of memories that the reader may not see count as unknown. This is a scalar subquery because it should be asked
# about single chunks and not become a join with all memories.
READABLE = """(
    SELECT true FROM memories_memory m
    WHERE m.instance_id = %(instance)s::uuid AND m.id = c.memory_id AND m.listed
      AND (m.expires_at IS NULL OR m.expires_at > statement_timestamp())
      AND (%(reader)s::text IS NULL OR m.visibility <> 'private' OR m.owner = %(reader)s::text)
)"""

# A common word is looked for in the newest chunks first, because the index would list every chunk that contains it;
# for a rare word that list is short. The arrays are in subselects because otherwise PostgreSQL would plan for their
# lengths and keep no generic plan.
UNKNOWN = f"""
SELECT word, cut, (
    SELECT true FROM memories_chunk c
    WHERE c.instance_id = %(instance)s::uuid AND c.live AND c.words @@ ({quoted("word")} || ':*')::tsquery
      AND {READABLE}
    LIMIT 1
) IS NOT NULL
FROM unnest((SELECT %(words)s::text[])) AS word,
     LATERAL (SELECT tsvector_to_array(memories_words(%(language)s::text::regconfig, '', word, '')) AS cut) AS index,
     LATERAL (SELECT string_agg({quoted("piece")}, ' | ')::tsquery AS any_of FROM unnest(cut) AS piece) AS wanted
WHERE cardinality(cut) > 0 AND coalesce((
    SELECT true FROM (
        SELECT memory_id, words FROM memories_chunk
        WHERE instance_id = %(instance)s::uuid AND live ORDER BY id DESC LIMIT 100
    ) AS c
    WHERE c.words @@ any_of AND {READABLE}
    LIMIT 1
), (
    SELECT true FROM memories_chunk c
    WHERE c.instance_id = %(instance)s::uuid AND c.live AND c.words @@ any_of AND {READABLE}
    LIMIT 1
)) IS NULL
"""

LATEST = "SELECT (SELECT id FROM memories_auditentry WHERE instance_id = %(instance)s::uuid ORDER BY id DESC LIMIT 1)"
SAMPLED = f"""
SELECT coalesce(string_agg(strip({NO_PIECES})::text, ' '), '')
FROM (
    SELECT words, sum(number) OVER (ORDER BY id DESC) - number AS words_before
    FROM (
        SELECT c.id, c.words,
               CASE WHEN c.length > {MOST_IN_CHUNK} THEN length({NO_PIECES}) ELSE c.length END AS number
        FROM (
            SELECT id, memory_id, words, length FROM memories_chunk
            WHERE instance_id = %(instance)s::uuid AND live ORDER BY id DESC LIMIT {LOOKED_AT}
        ) AS c
        WHERE {READABLE} ORDER BY c.id DESC LIMIT {SAMPLE}
    ) AS readable
) AS newest
WHERE words_before < {SAMPLED_WORDS}
"""

# The words as they are written in the memories, because the index only has their stems. A sample may be a minute old,
# so words that nobody can read any more are left out.
SPELT = f"""
SELECT word, coalesce((
    SELECT token
    FROM (
        SELECT c.who, c.content, c.about FROM memories_chunk c
        WHERE c.instance_id = %(instance)s::uuid AND c.live
          AND c.words @@ array_to_tsvector(ARRAY[stem])::text::tsquery AND {READABLE}
        LIMIT 3
    ) AS examples, ts_parse('default', lower(concat_ws(' ', who, content, about)))
    WHERE (left(token, 1) = left(stem, 1) OR substr(token, 2, 2) = substr(stem, 2, 2) OR strpos(token, stem) > 1)
      AND stem = ANY(tsvector_to_array(to_tsvector(%(language)s::text::regconfig, memories_folded(token))))
    ORDER BY similarity(token, word) DESC, token
    LIMIT 1
), stem)
FROM unnest((SELECT %(words)s::text[]), (SELECT %(stems)s::text[])) AS meant (word, stem)
WHERE EXISTS (
    SELECT FROM memories_chunk c
    WHERE c.instance_id = %(instance)s::uuid AND c.live
      AND c.words @@ array_to_tsvector(ARRAY[stem])::text::tsquery AND {READABLE}
)
"""


def similar_words(scope: Scope, query: Query) -> Corrections:
    """For each word that appears nowhere, known words that begin with it, contain it or resemble it."""
    words = dict.fromkeys(SAID.findall(query.text.lower()))
    texts = [text for text in words if len(text) <= LONGEST_WORD][:MOST_WORDS]
    halves = {text: found for text in texts if len(found := HALVES.findall(text)) > 1}
    plain = {text: typed_otherwise(text) for text in texts}
    looked_up = [*texts, *chain(*halves.values(), *plain.values())]
    unknown = {row[0]: UnknownWord(*row) for row in _rows(scope, UNKNOWN, words=looked_up)} if looked_up else {}
    beginnings = [text for text in texts if text in unknown and unknown[text].is_beginning]
    # "inv20311" if INV-20311 is known.
    replaced = {
        text: [" ".join(found)] for text, found in halves.items() if text in unknown and not unknown.keys() & found
    }
    # "Müller" if Mueller is known.
    replaced |= {
        text: found
        for text in texts
        if text in unknown.keys() - beginnings and (found := [one for one in plain[text] if one not in unknown])
    }
    left = [unknown[text] for text in texts if text in unknown.keys() - beginnings - replaced.keys()]
    return Corrections(replaced | _known_words(scope, left), beginnings)


def _known_words(scope: Scope, words: Sequence[UnknownWord]) -> dict[str, list[str]]:
    """For each of these what was probably meant, spelt as in the newest chunks."""
    if not words:
        return {}
    known = _known_stems(scope)
    pairs = [(word.text, stem) for word in words for stem in word.meant(known)]
    spelt: dict[str, list[str]] = {}
    if pairs:
        for word, spelling in _rows(scope, SPELT, words=[word for word, _ in pairs], stems=[stem for _, stem in pairs]):
            spelt.setdefault(word, []).append(spelling)
    return spelt


class Sample(NamedTuple):
    latest: UUID | None
    """The latest entry of the audit log when the sample was taken: every write makes one."""
    until: float
    known: KnownStems


_samples: OrderedDict[tuple[UUID, str, str | None], Sample] = OrderedDict()


def _known_stems(scope: Scope) -> KnownStems:
    """Kept until somebody writes to the instance: while a person types, one search follows another."""
    key = (scope.instance.id, scope.instance.language, scope.private_memories_of)
    ((latest,),) = _rows(scope, LATEST)
    sample = _samples.pop(key, None)
    if sample is None or sample.latest != latest or sample.until < monotonic():
        ((tsvectors,),) = _rows(scope, SAMPLED)
        sample = Sample(latest, monotonic() + SECONDS, KnownStems(tsvectors))
    _samples[key] = sample
    while len(_samples) > MOST_SAMPLES:
        _samples.popitem(last=False)
    return sample.known


def _rows(scope: Scope, statement: str, **named: Any) -> list[tuple[Any, ...]]:
    instance = scope.instance
    named |= {"instance": instance.id, "language": instance.language, "reader": scope.private_memories_of}
    with connection.cursor() as cursor:
        cursor.execute(statement, named)
        return list(cursor.fetchall())


def corrected_query(query: Query, meant: Corrections) -> Query:
    instead = {word: " ".join(found) for word, found in meant.replaced.items()}
    words = [instead.get(word.lower(), word) for word in query.text.split()]
    required = tuple(tuple(other for phrase in group for other in _meant(phrase, meant)) for group in query.required)
    text = " ".join([*words, *instead.values()])
    return replace(query, text=text, required=required, prefix=" ".join(meant.beginnings))


def _meant(phrase: Phrase, meant: Corrections) -> list[Phrase]:
    """The phrase itself and its corrections. Beginnings of words may stand anywhere, not only in its order."""
    begun = [word for word in SAID.findall(phrase.words.lower()) if word in meant.beginnings]
    pieces = (*phrase.pieces, *(f"'{word}':*" for word in begun))
    instead = {**meant.replaced, **{word: [""] for word in begun}}
    most = max(map(len, instead.values()), default=0)

    def other(choice: int) -> str:
        return SAID.sub(lambda word: _choice(instead.get(word[0], [word[0]]), choice), phrase.words.lower())

    return [phrase, *(Phrase(words.strip(), pieces) for words in dict.fromkeys(map(other, range(most))))]


def _choice(words: Sequence[str], number: int) -> str:
    return words[min(number, len(words) - 1)]
