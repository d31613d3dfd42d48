from django.db import migrations

IDEOGRAPHS = r"\u3040-\u30FF\u3400-\u4DBF\u4E00-\u9FFF\uAC00-\uD7AF\uF900-\uFAFF"
ALPHABETS = r"\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF"
# Emoji and dingbats say something, but PostgreSQL's parser knows no word of them: each is one.
SYMBOLS = r"\u2600-\u27BF\U0001F000-\U0001FAFF"

PIECES = f"""
CREATE OR REPLACE FUNCTION memories_pieces(body text) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT coalesce(array_agg(DISTINCT piece), '{{}}') FROM (
        SELECT substr(run[1], i, 2)
        FROM regexp_matches(lower(body), '[{IDEOGRAPHS}]+', 'g') AS run, generate_series(1, length(run[1])) AS i
        UNION ALL
        SELECT substr(run[1], i, 3)
        FROM regexp_matches(lower(body), '[{ALPHABETS}]+', 'g') AS run,
             generate_series(1, greatest(length(run[1]) - 2, 1)) AS i
        UNION ALL
        SELECT symbol[1] FROM regexp_matches(body, '[{SYMBOLS}]', 'g') AS symbol
    ) AS pieces (piece)
$$
"""

# PostgreSQL's parser makes one word of an address, a path, a version, "this/that" and "end.Begin". Their parts are words
# too, and so are those of camelCase.
JOINED = "[[:alnum:]][./@][[:alnum:]]|[a-z][A-Z]"
COMPOUND = "[[:alnum:]_-]+(?:[./@:?=&#%~]+[[:alnum:]_-]+)+|[[:alnum:]]*[a-z][A-Z][[:alnum:]]*"
PARTS = f"""
CREATE OR REPLACE FUNCTION memories_parts(body text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT coalesce(string_agg(regexp_replace(spaced, '([a-z])([A-Z])', '\\1 \\2', 'g'), ' '), '')
    FROM regexp_matches(body, '({COMPOUND})', 'g') AS compound,
         regexp_replace(compound[1], '[^[:alnum:]_-]+|-(?=[0-9])', ' ', 'g') AS spaced
$$
"""

# A dash before a number is a sign to the parser, which is right for "-5" and wrong for "INV-20311" and "2026-05-31".
# An expression, not a query: PostgreSQL can then inline it.
CUT = f"""
CREATE OR REPLACE FUNCTION memories_cut(language regconfig, body text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_tsvector(language, regexp_replace(body, '([[:alnum:]])-(?=[0-9])', '\\1 ', 'g') || CASE
        WHEN body ~ '{JOINED}' THEN ' ' || memories_parts(body) ELSE '' END)
$$
"""

WORDS = f"""
CREATE OR REPLACE FUNCTION memories_words(language regconfig, who text, content text, about text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT setweight(to_tsvector(language, normalize(who, NFKC)), 'A') || CASE
        WHEN octet_length(who || content || about) = length(who || content || about)
        THEN memories_cut(language, content || ' ' || about)
        WHEN normalize(who || content || about, NFKC) ~ '[{ALPHABETS}{IDEOGRAPHS}{SYMBOLS}]'
        THEN memories_cut(language, regexp_replace(
                 normalize(content || ' ' || about, NFKC), '[{ALPHABETS}{IDEOGRAPHS}]+', ' ', 'g'))
             || array_to_tsvector(memories_pieces(normalize(who || ' ' || content || ' ' || about, NFKC)))
        ELSE memories_cut(language, normalize(content || ' ' || about, NFKC)) END
$$
"""

# Generated columns are computed when their row is written: those that come out differently now are.
ANEW = (
    "UPDATE memories_chunk SET language = language WHERE words <> memories_words(language, who, content, about)",
    "UPDATE memories_procedure SET language = language WHERE words <> memories_words(language, name, trigger, '')",
)


class Migration(migrations.Migration):
    dependencies = [("memories", "0014_sketch_short_vectors")]

    operations = [migrations.RunSQL(sql, migrations.RunSQL.noop) for sql in (PIECES, PARTS, CUT, WORDS, *ANEW)]
