import importlib

from django.db import migrations

before = importlib.import_module("memories.migrations.0025_long_numbers")

# E-mail and email, T-shirt and tshirt, wi-fi and wifi: after a letter or two a dash is often left out, though not in
# US-Dollar and Video-on-Demand.
DASHED = r"(?<![-&])\m([[:alpha:]][[:lower:]]?-[[:alpha:]]{2,})\M"
OTHERWISE = before.OTHERWISE.replace(
    "    ) AS others (written)",
    f"""        UNION ALL
        SELECT replace(dashed[1], '-', '') FROM regexp_matches(body, '{DASHED}', 'g') AS dashed
    ) AS others (written)""",
)
PERHAPS = rf"{before.PERHAPS}|\m[[:alpha:]][[:lower:]]?-[[:alpha:]]"
CUT = before.CUT.replace(before.PERHAPS, PERHAPS)

# Only what may come out differently now is looked at.
ANEW = (
    f"""
UPDATE memories_chunk SET language = language
WHERE content || ' ' || about ~ '{DASHED}' AND words <> memories_words(language, who, content, about)
""",
    "UPDATE memories_procedure SET language = language WHERE words <> memories_words(language, name, trigger, '')",
)


class Migration(migrations.Migration):
    dependencies = [("memories", "0025_long_numbers")]

    operations = [
        migrations.RunSQL(OTHERWISE, before.OTHERWISE),
        migrations.RunSQL(CUT, before.CUT),
        *[migrations.RunSQL(sql, migrations.RunSQL.noop) for sql in ANEW],
    ]
