"""The part of the search statement that cuts the query into words and ranks memories by them."""

from memories.chunking import ALPHABETS, IDEOGRAPHS, MARKS
from memories.search.narrowing import Narrowing
from memories.search.sizes import MIDDLE, SCOPED, WHOLE

# How long the word list is: alone, and when it is merged with vectors.
KEYWORD_DEPTH, MERGED_DEPTH = 200, 150
# How many rows rare words may select in a large instance.
WORD_BUDGET = 4_000
# If rare words select fewer rows than this, common words select rows as well.
NEXT_TO_NOTHING = 20

# The pieces that stand for words in scripts without spaces.
UNSPACED = f"[{IDEOGRAPHS}]{{2}}|[{ALPHABETS}]{{3}}"


def quoted(word: str) -> str:
    """SQL that quotes the word in this column for a text-search query."""
    return rf"'''' || replace(replace({word}, '\', '\\'), '''', '''''') || ''''"


# The first step of every statement. The vector is NULL if only words are searched.
POINT = """
WITH point AS MATERIALIZED (SELECT %(vector)s::halfvec(1536) AS wanted),
"""

# The words of the query, cut by the same function as the chunks, and the beginnings of words: of the one still being
# typed and of those that only longer words begin with.
TYPED = """
typed AS MATERIALIZED (
    SELECT word, {quoted} AS quoted, ':' AS sign
    FROM unnest(tsvector_to_array(memories_words(%(language)s::text::regconfig, '', %(text)s::text, ''))) AS word
    UNION ALL
    SELECT word || '*', {quoted} || ':*', ''
    FROM string_to_table(%(prefix)s::text, ' ') AS p (word)
    LIMIT 64
),
-- The same words before they were stemmed, without stop words.
asked AS MATERIALIZED (
    SELECT word FROM regexp_split_to_table(left(lower(%(text)s::text), 500), '[^\\w{marks}]+') AS asked (word)
    WHERE EXISTS (SELECT FROM typed t WHERE length(t.word) > 1 AND starts_with(asked.word, left(t.word, -1)))
    UNION ALL
    SELECT word FROM typed WHERE %(text)s::text ~ '{unspaced}' AND word ~ '^({unspaced})$'
),
average AS MATERIALIZED (
    SELECT greatest(avg(length), 1)::float8 AS length
    FROM (SELECT length FROM memories_chunk WHERE instance_id = %(instance)s::uuid ORDER BY id LIMIT 300) AS sample
),
""".format(quoted=quoted("word"), marks=MARKS, unspaced=UNSPACED)

# The chunks that are searched.
CHUNKS = """
    FROM memories_chunk c
    WHERE c.instance_id = %(instance)s::uuid AND (c.live OR %(superseded)s::boolean) AND {narrowed}
"""
TERM = """
term AS MATERIALIZED (SELECT word, quoted, sign, quoted::tsquery AS wanted FROM typed),
"""

# For an instance of a few thousand chunks: every pair of a word and a chunk that contains it, by one index scan per
# word.
MATCHED_EXACT = """
matched AS MATERIALIZED (
    SELECT t.word, c.id, c.memory_id, c.length
    FROM term t CROSS JOIN LATERAL (
        SELECT c.id, c.memory_id, c.length {chunks} AND c.words @@ t.wanted OFFSET 0
    ) AS c
),
"""

# For filters that leave a few thousand chunks of an instance of any size: those chunks are read and searched.
SCOPE = """
scope AS MATERIALIZED (
    SELECT c.* FROM allowed a CROSS JOIN LATERAL (
        SELECT c.id, c.memory_id, c.length, c.words FROM memories_chunk c
        WHERE c.instance_id = %(instance)s::uuid AND c.memory_id = a.id AND (c.live OR %(superseded)s::boolean)
        OFFSET 0
    ) AS c
),
"""
MATCHED_SCOPED = """
matched AS MATERIALIZED (
    SELECT t.word, c.id, c.memory_id, c.length FROM scope c JOIN term t ON c.words @@ t.wanted
),
"""

SCORED = """
weight AS MATERIALIZED (
    SELECT word, ln(1 + (greatest({total}::float8, count(*)) - count(*) + 0.5) / (count(*) + 0.5)) AS idf
    FROM matched GROUP BY word
),
scored AS MATERIALIZED (
    SELECT m.memory_id,
           sum(w.idf) / (0.85::float8 + 0.15::float8 * min(m.length) / (SELECT length FROM average)) AS score
    FROM matched m JOIN weight w USING (word) GROUP BY m.memory_id, m.id
),
"""

# For large instances: rare words select rows, and common words only score them. If the rare words select next to
# nothing, perhaps because one of them appears nowhere, common words select rows too: all of them together, the two
# rarest together, and the rarest alone.
WORDS_LARGE = """
term AS MATERIALIZED (
    SELECT q.word, q.quoted, q.sign, q.quoted::tsquery AS wanted, coalesce(f.chunks, 0) AS common,
           sum(coalesce(f.chunks, 50)) OVER (ORDER BY coalesce(f.chunks, 0), q.word) AS running
    FROM typed q LEFT JOIN memories_wordfrequency f ON f.instance_id = %(instance)s::uuid AND f.word = q.word
),
rare AS MATERIALIZED (
    SELECT t.word, c.id, c.memory_id, c.length
    FROM term t CROSS JOIN LATERAL (
        SELECT c.id, c.memory_id, c.length {chunks} AND c.words @@ t.wanted LIMIT %(budget)s::bigint
    ) AS c
    WHERE t.running <= %(budget)s::bigint
),
common AS MATERIALIZED (
    SELECT quoted, wanted, row_number() OVER (ORDER BY running) AS place FROM term
    WHERE running > %(budget)s::bigint AND (SELECT count(*) FROM rare) < {next_to_nothing}
),
together AS MATERIALIZED (
    SELECT string_agg(quoted, ' & ')::tsquery AS wanted FROM common HAVING count(*) > 2
    UNION ALL
    SELECT string_agg(quoted, ' & ')::tsquery FROM common WHERE place <= 2 HAVING count(*) = 2
    UNION ALL
    SELECT wanted FROM common WHERE place = 1
),
driven AS MATERIALIZED (
    SELECT word, id, memory_id, length FROM rare
    UNION ALL
    SELECT NULL, c.id, c.memory_id, c.length
    FROM together d CROSS JOIN LATERAL (
        SELECT c.id, c.memory_id, c.length {chunks} AND c.words @@ d.wanted LIMIT 1000
    ) AS c
),
-- `found_all`: the word has selected all rows that contain it, so no other row has to be asked for it.
weight AS MATERIALIZED (
    SELECT t.word, t.wanted, ln(1 + (greatest(%(chunks)s::float8, df) - df + 0.5) / (df + 0.5)) AS idf,
           t.running <= %(budget)s::bigint AND coalesce(m.counted, 0) < %(budget)s::bigint AS found_all
    FROM term t LEFT JOIN (SELECT word, count(*) AS counted FROM driven GROUP BY word) AS m USING (word),
         LATERAL (SELECT greatest(t.common, m.counted, 1) AS df) AS d
),
-- Whether that is true of every word. Then scoring needs no look at the rows themselves.
complete AS MATERIALIZED (
    SELECT (SELECT max(running) FROM term) <= %(budget)s::bigint
           AND (SELECT count(*) FROM driven) < %(budget)s::bigint AS yes
),
promising AS MATERIALIZED (
    SELECT id, known FROM (
        SELECT d.id, coalesce(sum(w.idf), 0) AS score, coalesce(sum(w.idf) FILTER (WHERE w.found_all), 0) AS known
        FROM driven d LEFT JOIN weight w USING (word) WHERE NOT (SELECT yes FROM complete) GROUP BY d.id
    ) AS partly ORDER BY score DESC, id DESC LIMIT 600
),
scored AS MATERIALIZED (
    SELECT d.memory_id,
           sum(w.idf) / (0.85::float8 + 0.15::float8 * min(d.length) / (SELECT length FROM average)) AS score
    FROM driven d JOIN weight w USING (word) WHERE (SELECT yes FROM complete) GROUP BY d.memory_id, d.id
    UNION ALL
    SELECT c.memory_id,
           (p.known + coalesce((SELECT sum(w.idf) FROM weight w WHERE NOT w.found_all AND c.words @@ w.wanted), 0))
           / (0.85::float8 + 0.15::float8 * c.length / (SELECT length FROM average))
    FROM promising p JOIN memories_chunk c ON c.instance_id = %(instance)s::uuid AND c.id = p.id
),
"""

NO_WORDS = """
term AS MATERIALIZED (SELECT NULL::text AS word, NULL::tsquery AS wanted WHERE false),
"""

# The score of a memory is that of its best chunk.
KEYWORD = """
keyword AS MATERIALIZED (
    SELECT memory_id, score, score / max(score) OVER () AS share,
           row_number() OVER (ORDER BY score DESC, memory_id DESC) AS rank
    FROM (
        SELECT memory_id, max(score) AS score FROM scored
        GROUP BY memory_id ORDER BY score DESC, memory_id DESC LIMIT {keyword_depth}
    ) AS best
),
"""


def word_list(form: str, narrowing: Narrowing, depth: int) -> str:
    return TYPED + _scored(form, narrowing) + KEYWORD.format(keyword_depth=depth)


def _scored(form: str, narrowing: Narrowing) -> str:
    chunks = CHUNKS.format(narrowed=narrowing.of("c.memory_id"))
    if form in (WHOLE, MIDDLE):
        return TERM + MATCHED_EXACT.format(chunks=chunks) + SCORED.format(total="%(chunks)s")
    if form == SCOPED:
        return TERM + MATCHED_SCOPED + SCORED.format(total="(SELECT count(*) FROM scope)")
    return WORDS_LARGE.format(chunks=chunks, next_to_nothing=NEXT_TO_NOTHING)
