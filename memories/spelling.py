"""Words nobody wrote, and what was probably meant.

Known words are those of the newest chunks that may be read, fetched as one text. What looks like a word of the query is
found here: a pattern over that text takes a tenth of the time PostgreSQL needs to count its words.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db import connection

from accounts.access import Scope
from memories.query import Query
from memories.search_sql import quoted

MOST_WORDS = 8
# So many chunks, the newest that may be read, until they have so many words; not looked for any longer than that.
SAMPLE = 1_000
SAMPLED_WORDS = 20_000
LOOKED_AT = 4 * SAMPLE
# As similar as `%` of pg_trgm wants words to be.
ALIKE = 0.3
# How far what was meant may be longer or shorter.
STRETCH = 3


class Word:
    """A word of the query, written as it is and as the index would know it."""

    def __init__(self, text: str, cut: Sequence[str]) -> None:
        self.text = text
        self.lengths = range(max(len(cut[0]) - STRETCH, 3), len(text) + STRETCH + 1)
        self.spellings = [trigrams(spelling) for spelling in {text, cut[0]}]
        shared = {each.strip() for spelling in self.spellings for each in spelling} - {text[0], cut[0][0]}
        self.shares = re.compile("|".join(map(re.escape, shared))).search

    def near(self, stems: Iterable[str]) -> list[str]:
        """Those worth comparing, which takes longer than all of this."""
        begin, go_on, lengths, shares = self.text[0], self.text[1:3], self.lengths, self.shares
        alike = [stem for stem in stems if stem[0] == begin or stem[1:3] == go_on]
        return [stem for stem in alike if len(stem) in lengths and shares(stem)]

    def likeness(self, stem: str) -> float:
        """The share of trigrams both have, as pg_trgm counts them."""
        its = trigrams(stem)
        return max(len(its & own) / len(its | own) for own in self.spellings)


# What its reader cannot read is nowhere. A subquery for one value: asked of each chunk, never joined with all memories.
READABLE = """(
    SELECT true FROM memories_memory m
    WHERE m.instance_id = %(instance)s::uuid AND m.id = c.memory_id AND m.listed
      AND (m.expires_at IS NULL OR m.expires_at > statement_timestamp())
      AND (%(reader)s::text IS NULL OR m.visibility <> 'private' OR m.owner = %(reader)s::text)
)"""

# A common word is seen among the newest chunks at once, where the index would list all that say it; of a rare one the
# list is short. Arrays are selected, because a plan for unknown arrays is only kept if known ones look no cheaper.
NOWHERE = f"""
SELECT word, cut
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

SAMPLED = f"""
SELECT coalesce(string_agg(strip(words)::text, ' '), '')
FROM (
    SELECT words, sum(length) OVER (ORDER BY id DESC) - length AS words_before
    FROM (
        SELECT c.id, c.words, c.length
        FROM (
            SELECT id, memory_id, words, length FROM memories_chunk
            WHERE instance_id = %(instance)s::uuid AND live ORDER BY id DESC LIMIT {LOOKED_AT}
        ) AS c
        WHERE {READABLE} ORDER BY c.id DESC LIMIT {SAMPLE}
    ) AS readable
) AS newest
WHERE words_before < {SAMPLED_WORDS}
"""

# How these words are written: the index knows their stems alone.
SPELT = f"""
SELECT word, coalesce((
    SELECT token
    FROM (
        SELECT c.who, c.content, c.about FROM memories_chunk c
        WHERE c.instance_id = %(instance)s::uuid AND c.live
          AND c.words @@ array_to_tsvector(ARRAY[stem])::text::tsquery AND {READABLE}
        LIMIT 3
    ) AS examples, ts_parse('default', lower(concat_ws(' ', who, content, about)))
    WHERE (left(token, 1) = left(stem, 1) OR substr(token, 2, 2) = substr(stem, 2, 2))
      AND stem = ANY(tsvector_to_array(to_tsvector(%(language)s::text::regconfig, memories_folded(token))))
    ORDER BY similarity(token, word) DESC, token
    LIMIT 1
), stem)
FROM unnest((SELECT %(words)s::text[]), (SELECT %(stems)s::text[])) AS meant (word, stem)
"""


def similar_words(scope: Scope, query: Query) -> dict[str, str]:
    """For each word that is nowhere, the most similar word that is somewhere."""
    texts = list(dict.fromkeys(re.findall(r"[^\W_]{3,}", query.text.lower())))[:MOST_WORDS]
    nowhere = [Word(*row) for row in _rows(scope, NOWHERE, words=texts)] if texts else []
    if not nowhere:
        return {}
    ((sample,),) = _rows(scope, SAMPLED)
    meant = _meant(nowhere, sample)
    return dict(_rows(scope, SPELT, words=[*meant], stems=[*meant.values()])) if meant else {}


def _rows(scope: Scope, statement: str, **named: Any) -> list[tuple[Any, ...]]:
    instance = scope.instance
    named |= {"instance": instance.id, "language": instance.language, "reader": scope.private_memories_of}
    with connection.cursor() as cursor:
        cursor.execute(statement, named)
        return list(cursor.fetchall())


def _meant(words: Sequence[Word], sample: str) -> dict[str, str]:
    """The stem in the sample that each word is most like, the more common one of two."""
    begin, go_on = ("|".join({word.text[part] for word in words}) for part in (slice(1), slice(1, 3)))
    stems = Counter(re.findall(rf"'((?:{begin}|.(?:{go_on}))[^'\\]+)'", sample))
    meant = {}
    for word in words:
        alike = [(-word.likeness(stem), -stems[stem], stem) for stem in word.near(stems)]
        if alike and -min(alike)[0] >= ALIKE:
            meant[word.text] = min(alike)[2]
    return meant


def trigrams(word: str) -> set[str]:
    padded = f"  {word} "
    return {padded[n : n + 3] for n in range(len(padded) - 2)}


def corrected_query(query: Query, corrected: Mapping[str, str]) -> Query:
    words = [corrected.get(word.lower(), word) for word in query.text.split()]
    return replace(query, text=" ".join([*words, *corrected.values()]), prefix="")
