"""Finding the procedures that fit a text, by words and by vectors of their names and triggers.

The two ranked lists are merged by reciprocal rank fusion. Both have a minimum, because unlike a search this must find
nothing if nothing fits: the common words must be a good share of a name, of a trigger or of the text (rare words count
more), or the vector must be near enough.
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

# The lowest cosine that counts as near. Hashed vectors of unrelated texts are never quite zero.
NEAR, NEAR_OFFLINE = 0.35, 0.4


@dataclass(frozen=True, slots=True)
class Match:
    procedure: Procedure
    matched: list[str]
    """Stems of the text that its name or trigger contains."""
    similarity: float | None
    """The cosine, if its vector is near enough to count."""
    score: float


def matches(scope: Scope, text: str, *, limit: int = 3) -> list[Match]:
    """Matching procedures, best first; by words alone if there are no vectors. Must not be called in a transaction,
    because it may ask the embedder."""
    query = read_query(text)
    if query.is_empty:
        return []
    instance = scope.instance
    exist, have_vectors = _first_look(instance)
    if not exist:
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

# Words are weighted by idf. With few procedures, all words have about the same weight. Words of scripts without spaces
# have no weight label that tells names from triggers, so they count for both.
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
    """Whether the instance has procedures, and vectors of them. Most have none, and need no further query."""
    with connection.cursor() as cursor:
        cursor.execute(FIRST_LOOK, {"instance": instance.id, "generation": instance.embedding_generation})
        exist, have_vectors = cursor.fetchone()
    return exist, have_vectors and bool(instance.embedding_model)


def _vector(instance: Instance, text: str) -> list[float] | None:
    """The text's vector by the model of the procedures' vectors. Recall has just asked for it, so it is cached."""
    try:
        return embed_query(instance, text, model=instance.embedding_model)
    except Unavailable:
        return None


def _find(
    instance: Instance, text: str, vector: Sequence[float] | None, limit: int
) -> list[tuple[UUID, list[str], float | None, float]]:
    parameters: dict[str, Any] = {
        "instance": instance.id,
        "language": instance.language,
        "text": text,
        "vector": HalfVector.of(vector) if vector is not None else None,
        "generation": instance.embedding_generation,
        "near": NEAR_OFFLINE if instance.embedding_model == OFFLINE else NEAR,
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(MATCH, parameters)
        return [(id, matched, near, float(score)) for id, matched, near, score in cursor.fetchall()]
