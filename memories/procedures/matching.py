"""Which procedures fit what was said: words and meaning of their names and triggers, merged by reciprocal rank.

Both lists have a floor, because unlike a search this must find nothing when nothing fits: a match says a good part of
a name, of a trigger or of the text itself, counted in rare words, or its vector is near enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from accounts.access import Scope
from instances.models import Instance
from memories.asking import Unavailable
from memories.embedding.embedder import embed_query
from memories.embedding.offline import MODEL as OFFLINE
from memories.models import Procedure
from memories.search.query import read_query
from memoryconsole.postgres.halfvec import HalfVector

# From these cosines on; hashed vectors of unrelated texts are never quite at zero.
NEAR, NEAR_OFFLINE = 0.35, 0.4


@dataclass(frozen=True, slots=True)
class Match:
    procedure: Procedure
    matched: list[str]
    """Words of the text that its name or trigger has, as stems."""
    similarity: float | None
    """Cosine, when its vector is near enough to count."""
    score: float


def matches(scope: Scope, text: str, *, limit: int = 3) -> list[Match]:
    """The best first. Words alone where there are no vectors; may ask for the text's vector, so not in transactions."""
    query = read_query(text)
    if query.is_empty:
        return []
    instance = scope.instance
    are_there, have_vectors = _first_look(instance)
    if not are_there:
        return []
    vector = _vector(instance, query.text) if have_vectors else None
    found = _find(instance, query.text, vector, limit)
    rows = Procedure.objects.filter(instance=instance, id__in=[id for id, *_ in found]).defer("words")
    procedures = {procedure.id: procedure for procedure in rows}
    return [Match(procedures[id], matched, near, score) for id, matched, near, score in found if id in procedures]


FIRST_LOOK = """
SELECT EXISTS (SELECT FROM memories_procedure WHERE instance_id = %(instance)s),
       EXISTS (SELECT FROM memories_procedurevector
               WHERE instance_id = %(instance)s AND generation = %(generation)s::smallint)
"""

# A word that many procedures have says little; with only a few of them, all words say about the same. Words written
# without spaces carry no weight that would tell names from triggers: they count for both.
MATCH = r"""
WITH typed AS MATERIALIZED (
    SELECT word, quoted, quoted::tsquery AS wanted
    FROM (
        SELECT word, '''' || replace(replace(word, '\', '\\'), '''', '''''') || '''' AS quoted
        FROM unnest(tsvector_to_array(memories_words(%(language)s::text::regconfig, '', %(text)s::text, ''))) AS word
        LIMIT 64
    ) AS words
),
anything AS MATERIALIZED (SELECT string_agg(quoted, ' | ')::tsquery AS wanted FROM typed),
point AS MATERIALIZED (SELECT %(vector)s::halfvec(1536) AS wanted),
size AS MATERIALIZED (
    SELECT greatest(count(*), 20)::float8 AS n FROM memories_procedure WHERE instance_id = %(instance)s::uuid
),
candidate AS MATERIALIZED (
    SELECT id, usage_count, words FROM memories_procedure
    WHERE instance_id = %(instance)s::uuid AND words @@ (SELECT wanted FROM anything)
),
said AS MATERIALIZED (SELECT c.id, c.usage_count, t.word FROM candidate c JOIN typed t ON c.words @@ t.wanted),
weight AS MATERIALIZED (
    SELECT word, ln(1 + (n - df + 0.5) / (df + 0.5)) AS idf
    FROM (
        SELECT t.word, count(s.id)::float8 AS df FROM typed t LEFT JOIN said s ON s.word = t.word GROUP BY t.word
    ) AS counted, size
),
best AS MATERIALIZED (
    SELECT id, usage_count, sum(idf) AS score, array_agg(s.word ORDER BY idf DESC, s.word) AS matched
    FROM said s JOIN weight USING (word) GROUP BY id, usage_count
    ORDER BY score DESC, usage_count DESC, id DESC LIMIT 50
),
keyword AS MATERIALIZED (
    SELECT id, matched, row_number() OVER (ORDER BY score DESC, usage_count DESC, id DESC) AS rank
    FROM best CROSS JOIN LATERAL (
        SELECT greatest(
            sum(idf) FILTER (WHERE is_typed AND in_name) / nullif(sum(idf) FILTER (WHERE in_name), 0),
            sum(idf) FILTER (WHERE is_typed AND in_trigger) / nullif(sum(idf) FILTER (WHERE in_trigger), 0),
            score / (SELECT sum(idf) FROM weight)
        ) AS share
        FROM (
            SELECT w.word IS NOT NULL AS is_typed, coalesce(w.idf, ln(1 + (n - 0.5) / 1.5)) AS idf,
                   coalesce('A' = ANY(weights), true) AS in_name, coalesce('D' = ANY(weights), true) AS in_trigger
            FROM memories_procedure p CROSS JOIN unnest(p.words) AS own
                 LEFT JOIN weight w ON w.word = own.lexeme CROSS JOIN size
            WHERE p.instance_id = %(instance)s::uuid AND p.id = best.id
        ) AS own
    ) AS shares
    WHERE share >= 0.5 OR (cardinality(matched) > 1 AND share >= 0.25)
),
nearest AS MATERIALIZED (
    SELECT id, similarity, row_number() OVER (ORDER BY similarity DESC, id DESC) AS rank
    FROM (
        SELECT procedure_id AS id, 1 - (vector <=> (SELECT wanted FROM point)) AS similarity
        FROM memories_procedurevector
        WHERE instance_id = %(instance)s::uuid AND generation = %(generation)s::smallint
          AND (SELECT wanted FROM point) IS NOT NULL
    ) AS compared
    WHERE similarity >= %(near)s::float8
)
SELECT id, coalesce(k.matched, '{}'), v.similarity,
       coalesce(1.0 / (60 + k.rank), 0) + coalesce(1.0 / (60 + v.rank), 0) AS score
FROM keyword k FULL JOIN nearest v USING (id)
     JOIN memories_procedure p USING (id)
WHERE p.instance_id = %(instance)s::uuid
ORDER BY score DESC, p.usage_count DESC, id DESC
LIMIT %(limit)s::bigint
"""


def _first_look(instance: Instance) -> tuple[bool, bool]:
    """Whether there is anything to compare with; most instances of most assistants have none, and pay for no more."""
    with connection.cursor() as cursor:
        cursor.execute(FIRST_LOOK, {"instance": instance.id, "generation": instance.embedding_generation})
        are_there, have_vectors = cursor.fetchone()
    return are_there, have_vectors and bool(instance.embedding_model)


def _vector(instance: Instance, text: str) -> list[float] | None:
    """By the model of the vectors it is compared with; recall has just asked for the same one, which is remembered."""
    try:
        return embed_query(instance, text, model=instance.embedding_model)
    except Unavailable:
        return None


def _find(
    instance: Instance, text: str, vector: Sequence[float] | None, limit: int
) -> list[tuple[UUID, list[str], float | None, float]]:
    named: dict[str, Any] = {
        "instance": instance.id,
        "language": instance.language,
        "text": text,
        "vector": HalfVector.of(vector) if vector is not None else None,
        "generation": instance.embedding_generation,
        "near": NEAR_OFFLINE if instance.embedding_model == OFFLINE else NEAR,
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(MATCH, named)
        return [(id, matched, near, float(score)) for id, matched, near, score in cursor.fetchall()]
