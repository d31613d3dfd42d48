from django.contrib.postgres.operations import BtreeGinExtension, TrigramExtension
from django.db import migrations
from pgvector.django import VectorExtension

# Written without spaces: PostgreSQL's parser makes one word of a whole run, so overlapping pieces are indexed instead.
# Ideographs, kana and hangul as pairs; Thai, Lao, Burmese and Khmer are alphabets, where a pair says little: threes.
IDEOGRAPHS = r"\u3040-\u30FF\u3400-\u4DBF\u4E00-\u9FFF\uAC00-\uD7AF\uF900-\uFAFF"
ALPHABETS = r"\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF"

PIECES = f"""
CREATE FUNCTION memories_pieces(body text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT coalesce(array_agg(DISTINCT piece), '{{}}') FROM (
        SELECT substr(run[1], i, 2)
        FROM regexp_matches(lower(body), '[{IDEOGRAPHS}]+', 'g') AS run, generate_series(1, length(run[1])) AS i
        UNION ALL
        SELECT substr(run[1], i, 3)
        FROM regexp_matches(lower(body), '[{ALPHABETS}]+', 'g') AS run,
             generate_series(1, greatest(length(run[1]) - 2, 1)) AS i
    ) AS pieces (piece)
$$
"""

# The one tokeniser, for chunks and queries alike. Who said it carries weight A. Variants of width and composition are
# one word; most texts are ASCII and have none. An expression, not a query: PostgreSQL can then inline it.
WORDS = f"""
CREATE FUNCTION memories_words(language regconfig, who text, content text, about text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT setweight(to_tsvector(language, normalize(who, NFKC)), 'A') || CASE
        WHEN octet_length(who || content || about) = length(who || content || about)
        THEN to_tsvector(language, content || ' ' || about)
        WHEN normalize(who || content || about, NFKC) ~ '[{ALPHABETS}{IDEOGRAPHS}]'
        THEN to_tsvector(language, regexp_replace(
                 normalize(content || ' ' || about, NFKC), '[{ALPHABETS}{IDEOGRAPHS}]+', ' ', 'g'))
             || array_to_tsvector(memories_pieces(normalize(who || ' ' || content || ' ' || about, NFKC)))
        ELSE to_tsvector(language, normalize(content || ' ' || about, NFKC)) END
$$
"""


class Migration(migrations.Migration):
    initial = True

    operations = [
        BtreeGinExtension(),
        TrigramExtension(),
        VectorExtension(),
        migrations.RunSQL(PIECES, "DROP FUNCTION memories_pieces(text)"),
        migrations.RunSQL(WORDS, "DROP FUNCTION memories_words(regconfig, text, text, text)"),
    ]
