"""Which words are common in a large instance, so that search can start from the rare ones.

The frequencies are estimated from a sample, because it hardly matters whether a word is in 3 % or in 4 % of the chunks.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from accounts.access import Scope
from memories.listing import lengths
from memories.models import Chunk, WordFrequency

SAMPLE = 20_000
COMMON = 0.002
CHANGED = 0.1
# The row of the empty word, which no text contains, has the number of all memories when the words were counted.
ALL = ""

# The hash of a chunk's text decides whether it is in the sample, which is thus spread evenly over the instance.
SAMPLED = """
SELECT words FROM memories_chunk
WHERE instance_id = '{instance}' AND live AND get_byte(text_hash, 0) * 256 + get_byte(text_hash, 1) < {share}
"""
COUNT = """
INSERT INTO memories_wordfrequency (instance_id, word, chunks)
SELECT %(instance)s, word, round(ndoc * %(scale)s::float8) FROM ts_stat(%(sampled)s) WHERE ndoc > %(least)s::float8
"""


def count_words(scope: Scope) -> None:
    """Count the common words of the instance again."""
    instance = scope.instance
    total = Chunk.objects.filter(instance=instance, live=True).count()
    share = min(1.0, SAMPLE / max(total, 1))
    named: dict[str, Any] = {
        "instance": instance.id,
        "sampled": SAMPLED.format(instance=instance.id, share=round(share * 65_536)),
        "scale": 1 / share,
        "least": total * share * COMMON,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        WordFrequency.objects.filter(instance=instance).delete()
        cursor.execute(COUNT, named)
        WordFrequency.objects.create(instance=instance, word=ALL, chunks=lengths(scope).all)


def count_words_again(scope: Scope) -> None:
    """If they are counted: in another language they have other stems, although there are as many memories as before."""
    if WordFrequency.objects.filter(instance=scope.instance).exists():
        count_words(scope)


# Words whose estimate may come from the deleted chunks alone. A word without a row counts as rare until the next
# count.
FORGET = """
WITH gone AS (
    SELECT lexeme, count(*) AS chunks FROM memories_chunk c, unnest(c.words)
    WHERE c.instance_id = %(instance)s AND c.memory_id = ANY(%(ids)s) GROUP BY lexeme
)
DELETE FROM memories_wordfrequency w USING gone
WHERE w.instance_id = %(instance)s AND w.word = gone.lexeme AND w.chunks <= 2 * gone.chunks
"""


def forget_words(scope: Scope, memory_ids: Sequence[UUID]) -> None:
    """Call this before memories are deleted, so that no word that only they contain stays behind."""
    if WordFrequency.objects.filter(instance=scope.instance).exists():
        with connection.cursor() as cursor:
            cursor.execute(FORGET, {"instance": scope.instance.id, "ids": list(memory_ids)})


def is_outdated(counted: int | None, now: int) -> bool:
    """Whether an instance has grown or shrunk by a tenth since its words were counted."""
    return counted is None or abs(now - counted) > CHANGED * counted
