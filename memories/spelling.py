"""Words nobody wrote, and what was probably meant."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.db import connection

from accounts.access import Scope
from memories.query import Query
from memories.search_sql import quoted

MOST_WORDS = 8
# Known words are those of this many chunks, the newest.
SAMPLE = 1_000

# Words of the instance that look like the ones nobody wrote, by the letters they share.
SIMILAR = """
WITH wanted AS MATERIALIZED (
    SELECT word, cut FROM (
        SELECT word, tsvector_to_array(memories_words(%(language)s::text::regconfig, '', word, '')) AS cut
        FROM unnest(%(words)s::text[]) AS word
    ) AS asked
    WHERE cardinality(cut) > 0 AND NOT EXISTS (
        SELECT FROM memories_chunk c
        WHERE c.instance_id = %(instance)s::uuid AND c.live {{unread}} AND c.words @@ (
            SELECT string_agg({quoted}, ' | ')::tsquery
            FROM unnest(cut) AS each
        )
    )
),
known AS MATERIALIZED (
    SELECT word, ndoc FROM ts_stat(CASE WHEN EXISTS (SELECT FROM wanted) THEN %(sample)s ELSE %(nothing)s END)
    WHERE length(word) > 2
)
SELECT DISTINCT ON (wanted.word) wanted.word, known.word
FROM wanted JOIN known ON length(known.word) BETWEEN length(wanted.cut[1]) - 3 AND length(wanted.word) + 3
     AND (left(known.word, 1) = left(wanted.word, 1) OR substr(known.word, 2, 2) = substr(wanted.word, 2, 2))
     AND (known.word %% wanted.word OR known.word %% wanted.cut[1])
ORDER BY wanted.word, greatest(similarity(known.word, wanted.word), similarity(known.word, wanted.cut[1])) DESC,
         known.ndoc DESC, known.word
""".format(quoted=quoted("each"))
NOTHING = "SELECT ''::tsvector WHERE false"
SAMPLED = """
SELECT c.words FROM memories_chunk c WHERE c.instance_id = '{instance}' AND c.live {unread}
ORDER BY c.id DESC LIMIT {sample}
"""


# How one of these words is written: the index knows its stem alone.
SPELLING = """
SELECT lower(token)
FROM (
    SELECT c.who, c.content, c.about FROM memories_chunk c
    WHERE c.instance_id = %(instance)s::uuid AND c.live {unread}
      AND c.words @@ array_to_tsvector(ARRAY[%(stem)s::text])::text::tsquery
    LIMIT 20
) AS examples, ts_parse('default', concat_ws(' ', who, content, about))
WHERE %(stem)s = ANY(tsvector_to_array(to_tsvector(%(language)s::text::regconfig, token)))
ORDER BY similarity(token, %(wanted)s) DESC, token
LIMIT 1
"""
# What nobody can read is nowhere, and a word of somebody's private memory is nobody else's suggestion.
UNREAD = """
AND c.memory_id NOT IN (
    SELECT id FROM memories_memory WHERE instance_id = '{instance}' AND expires_at <= statement_timestamp()
) AND c.memory_id NOT IN (SELECT id FROM memories_memory WHERE instance_id = '{instance}' AND review = 'pending')"""
PRIVATE = """
AND c.memory_id NOT IN (
    SELECT id FROM memories_memory WHERE instance_id = '{instance}' AND visibility = 'private'{of}
)"""


def similar_words(scope: Scope, query: Query) -> dict[str, str]:
    """For each word that is nowhere, the most similar word that is somewhere."""
    words = re.findall(r"[^\W_]{3,}", query.text.lower())[:MOST_WORDS]
    if not words:
        return {}
    instance = scope.instance
    unread = _unread(scope)
    sample = SAMPLED.format(instance=instance.id, unread=unread, sample=SAMPLE)
    named: dict[str, Any] = {"instance": instance.id, "language": instance.language, "words": words}
    named |= {"sample": sample, "nothing": NOTHING, "reader": scope.private_memories_of}
    with connection.cursor() as cursor:
        cursor.execute(SIMILAR.format(unread=_unread(scope, of=" AND owner <> %(reader)s")), named)
        stems = dict(cursor.fetchall())
        for word, stem in stems.items():
            cursor.execute(SPELLING.format(unread=unread), {**named, "stem": stem, "wanted": word})
            stems[word] = (cursor.fetchone() or [stem])[0]
    return stems


def _unread(scope: Scope, *, of: str = "") -> str:
    hidden = UNREAD if scope.private_memories_of is None else UNREAD + PRIVATE
    return hidden.format(instance=scope.instance.id, of=of)


def corrected_query(query: Query, corrected: Mapping[str, str]) -> Query:
    words = [corrected.get(word.lower(), word) for word in query.text.split()]
    return replace(query, text=" ".join([*words, *corrected.values()]), prefix="")
