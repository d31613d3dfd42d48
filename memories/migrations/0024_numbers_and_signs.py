import importlib

from django.db import migrations

before = importlib.import_module("memories.migrations.0015_find_parts_and_spellings")

# The same thing is written as 50000, 50,000, 50.000, 50_000 and 50 000, as 5mm and 5 mm, as v4.12.3 and 4.12.3, as U.K.
# and UK, and is /deploy or +49 with its sign and without. Whichever it is, the other way is a word as well.
GROUPED = "(?<![0-9.,_])([1-9][0-9]{{0,2}}(?:{sign}[0-9]{{3}})+)(?![0-9]|{sign}[0-9])"
THOUSANDS = "|".join(GROUPED.format(sign=sign) for sign in (",", "[.]", "_", " ", "[''’]"))
VERSION = r"\m[vV]([0-9]+(?:[.][0-9]+)+)"
MEASURE = r"\m((?:[0-9]+[:.,])*[0-9]+)([[:alpha:]]{1,3})\M(?!:)"
INITIALS = r"\m((?:[[:alpha:]][.]){2,}[[:alpha:]]?)(?![[:alnum:]])"
# Telephone, card and account numbers are written in groups, each by its own habit: (415) 555-0132 and 4155550132. The
# address of a computer is no such number.
ADDRESS = "[0-9]{1,3}(?:[.][0-9]{1,3}){3}(?![.0-9])"
LONG = f"(?<![[:alnum:].,])(?!{ADDRESS})([0-9]+(?:[ ./()-]{{1,3}}[0-9]+)+)(?![0-9:])"
FROM_DIGITS, TO_DIGITS = 7, 20
# E-mail and email, T-shirt and tshirt, wi-fi and wifi: after a letter or two a dash is often left out, though not in
# US-Dollar and Video-on-Demand.
DASHED = r"(?<![-&])\m([[:alpha:]][[:lower:]]?-[[:alpha:]]{2,})\M"
LED = "(?<![[:alnum:]<])(?:[.~]?/|[+])([[:alnum:]_-]+)"
# Looked for in every text, so it is simpler than all of these.
PERHAPS = (
    r"[0-9][[:alpha:],._ ''’][[:alnum:]]|[0-9][[:alpha:]]\M|\m[vV][0-9]|\m[[:alpha:]][.][[:alpha:]][.]"
    r"|(^|[^[:alnum:]<])[/+][[:alnum:]]|[0-9][-/)][ (0-9]|\m[[:alpha:]][[:lower:]]?-[[:alpha:]]"
)
OTHERWISE = f"""
CREATE FUNCTION memories_otherwise(body text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT coalesce(string_agg(written, ' '), '') FROM (
        SELECT regexp_replace(concat(VARIADIC number), '[^0-9]', '', 'g')
        FROM regexp_matches(body, '{THOUSANDS}', 'g') AS number
        UNION ALL
        SELECT concat_ws(' ', version[1], replace(version[1], '.', ' '))
        FROM regexp_matches(body, '{VERSION}', 'g') AS version
        UNION ALL
        SELECT concat_ws(' ', VARIADIC measure) FROM regexp_matches(body, '{MEASURE}', 'g') AS measure
        UNION ALL
        SELECT word[1] FROM regexp_matches(body, '{LED}', 'g') AS word
        UNION ALL
        SELECT replace(initials[1], '.', '') FROM regexp_matches(body, '{INITIALS}', 'g') AS initials
        UNION ALL
        SELECT digits
        FROM regexp_matches(body, '{LONG}', 'g') AS number, regexp_replace(number[1], '[^0-9]', '', 'g') AS digits
        WHERE length(digits) BETWEEN {FROM_DIGITS} AND {TO_DIGITS}
        UNION ALL
        SELECT replace(dashed[1], '-', '') FROM regexp_matches(body, '{DASHED}', 'g') AS dashed
    ) AS others (written)
$$
"""

# Signs tell C++ and C# from C, and of AT&T nothing is left without its sign.
SIGNED = r"(\m[[:alpha:]][[:alnum:]]{0,9}(?:\+\+(?!\+)|#(?![[:alnum:]#]))|(?<![[:alnum:]=])[[:alpha:]]{1,3}&[[:alpha:]]{1,3}(?![[:alnum:]=]))"
SIGNS = f"""
CREATE FUNCTION memories_signed(body text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT coalesce(array_agg(lower(word[1])), '{{}}') FROM regexp_matches(body, '{SIGNED}', 'g') AS word
$$
"""

CUT = f"""
CREATE OR REPLACE FUNCTION memories_cut(language regconfig, body text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_tsvector(language, regexp_replace(body, '([[:alnum:]])-(?=[0-9])', '\\1 ', 'g')
        || CASE WHEN body ~ '{before.JOINED}' THEN ' ' || memories_parts(body) ELSE '' END
        || CASE WHEN body ~ '{PERHAPS}' THEN ' ' || memories_otherwise(body) ELSE '' END)
        || CASE WHEN body ~ '[[:alpha:]][[:alnum:]]*[+#&]' THEN array_to_tsvector(memories_signed(body)) ELSE '' END
$$
"""

# Only what may come out differently now is looked at.
ANEW = (
    f"""
UPDATE memories_chunk SET language = language
WHERE content || ' ' || about ~ '{PERHAPS}|[[:alpha:]][[:alnum:]]*[+#&]'
  AND words <> memories_words(language, who, content, about)
""",
    "UPDATE memories_procedure SET language = language WHERE words <> memories_words(language, name, trigger, '')",
)


class Migration(migrations.Migration):
    dependencies = [("memories", "0023_evidence_of_versions")]

    operations = [
        migrations.RunSQL(OTHERWISE, "DROP FUNCTION memories_otherwise(text)"),
        migrations.RunSQL(SIGNS, "DROP FUNCTION memories_signed(text)"),
        migrations.RunSQL(CUT, before.CUT),
        *[migrations.RunSQL(sql, migrations.RunSQL.noop) for sql in ANEW],
    ]
