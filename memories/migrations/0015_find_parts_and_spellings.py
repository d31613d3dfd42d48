from django.db import migrations

# Spellings of one word. Without a sign of its own in the second row, a character goes: points and vowel signs that are
# mostly left out, the stroke that makes Arabic words longer, and the soft hyphen.
SPELLINGS = [
    ("آأإٱىیکـ", "اااايي\u0643"),
    ("ёЁΆΈΉΊΌΎΏάέήίόύώϊϋΐΰς", "еЕΑΕΗΙΟΥΩαεηιουωιυιυσ"),
    ("șȘțȚİ", "şŞţŢi"),
]
ZEROS = [0x660, 0x6F0, 0x966, 0x9E6, 0xE50, 0xED0, 0x1040, 0x17E0]
POINTS = [(0x591, 0x5BD), (0x5BF, 0x5BF), (0x5C1, 0x5C2), (0x5C4, 0x5C5), (0x5C7, 0x5C7), (0x610, 0x61A)]
POINTS += [(0x64B, 0x65F), (0x670, 0x670), (0x6D6, 0x6DC), (0x6DF, 0x6E4), (0x6E7, 0x6E8), (0x6EA, 0x6ED)]


def spellings() -> tuple[str, str]:
    """For `translate`: what is replaced, and by what; what has no counterpart goes."""
    pairs = [pair for row in SPELLINGS for pair in zip(*row, strict=False)]
    pairs += [(chr(zero + digit), str(digit)) for zero in ZEROS for digit in range(10)]
    gone = "ـ\u00ad" + "".join(chr(code) for first, last in POINTS for code in range(first, last + 1))
    return "".join(pair[0] for pair in pairs) + gone, "".join(pair[1] for pair in pairs)


# Most texts have none of these, and looking for each of them takes its time.
HAS_SOME = r"[\u00AD\u0130\u0218-\u021B\u0370-\u03FF\u0401\u0451\u0591-\u06FF\u0900-\u0EFF\u1000-\u109F\u1780-\u17FF]"
FOLDED = """
CREATE OR REPLACE FUNCTION memories_folded(body text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN body ~ '{}' THEN translate(normalize(body, NFKC), '{}', '{}') ELSE normalize(body, NFKC) END
""".format(HAS_SOME, *spellings())

# Marks that repeat the ideograph before them belong to it; the dot between two names does not.
IDEOGRAPHS = (
    r"\u3005-\u3007\u3041-\u3096\u309D-\u309F\u30A1-\u30FA\u30FC-\u30FF\u3400-\u4DBF\u4E00-\u9FFF\uAC00-\uD7AF\uF900-\uFAFF"
)
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

# Written in Turkish, I may be the capital of a letter without a dot: such a text is also read that way.
WORDS = f"""
CREATE OR REPLACE FUNCTION memories_words(language regconfig, who text, content text, about text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT setweight(to_tsvector(language, memories_folded(who)), 'A') || CASE
        WHEN octet_length(who || content || about) = length(who || content || about)
        THEN memories_cut(language, content || ' ' || about)
        WHEN normalize(who || content || about, NFKC) ~ '[{ALPHABETS}{IDEOGRAPHS}{SYMBOLS}]'
        THEN memories_cut(language, regexp_replace(
                 memories_folded(content || ' ' || about), '[{ALPHABETS}{IDEOGRAPHS}]+', ' ', 'g'))
             || array_to_tsvector(memories_pieces(memories_folded(who || ' ' || content || ' ' || about)))
        WHEN content ~ '[ığİ]' AND content ~ 'I'
        THEN memories_cut(language, memories_folded(content || ' ' || about) || ' '
                 || translate(memories_folded(content), 'I', 'ı'))
        ELSE memories_cut(language, memories_folded(content || ' ' || about)) END
$$
"""

# Generated columns are computed when their row is written: those that come out differently now are.
ANEW = (
    "UPDATE memories_chunk SET language = language WHERE words <> memories_words(language, who, content, about)",
    "UPDATE memories_procedure SET language = language WHERE words <> memories_words(language, name, trigger, '')",
)


class Migration(migrations.Migration):
    dependencies = [("memories", "0014_sketch_short_vectors")]

    operations = [migrations.RunSQL(sql, migrations.RunSQL.noop) for sql in (FOLDED, PIECES, PARTS, CUT, WORDS, *ANEW)]
