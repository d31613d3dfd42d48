import importlib

from django.db import migrations

before = importlib.import_module("memories.migrations.0024_numbers_and_signs")

# Telephone, card and account numbers are written in groups, each by its own habit: (415) 555-0132 and 4155550132. The
# address of a computer is no such number.
ADDRESS = "[0-9]{1,3}(?:[.][0-9]{1,3}){3}(?![.0-9])"
LONG = f"(?<![[:alnum:].,])(?!{ADDRESS})([0-9]+(?:[ ./()-]{{1,3}}[0-9]+)+)(?![0-9:])"
FROM_DIGITS, TO_DIGITS = 7, 20
OTHERWISE = (
    before.OTHERWISE.strip()
    .replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    .replace(
        "    ) AS others (written)",
        f"""        UNION ALL
        SELECT digits
        FROM regexp_matches(body, '{LONG}', 'g') AS number, regexp_replace(number[1], '[^0-9]', '', 'g') AS digits
        WHERE length(digits) BETWEEN {FROM_DIGITS} AND {TO_DIGITS}
    ) AS others (written)""",
    )
)
PERHAPS = rf"{before.PERHAPS}|[0-9][-/)][ (0-9]"
CUT = before.CUT.replace(before.PERHAPS, PERHAPS)

# Only what may come out differently now is looked at.
ANEW = (
    """
UPDATE memories_chunk SET language = language
WHERE content || ' ' || about ~ '[0-9][ ./()-]{1,3}[0-9]' AND words <> memories_words(language, who, content, about)
""",
    "UPDATE memories_procedure SET language = language WHERE words <> memories_words(language, name, trigger, '')",
)


class Migration(migrations.Migration):
    dependencies = [("memories", "0024_numbers_and_signs")]

    operations = [
        migrations.RunSQL(OTHERWISE, before.OTHERWISE.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")),
        migrations.RunSQL(CUT, before.CUT),
        *[migrations.RunSQL(sql, migrations.RunSQL.noop) for sql in ANEW],
    ]
