import importlib

from django.db import migrations

before = importlib.import_module("memories.migrations.0015_find_parts_and_spellings")
planned = importlib.import_module("memories.migrations.0017_words_planned_once")

# Hindi is written with and without the dot below borrowed letters (दफ़्तर), and with either of the two dots above.
replaced, by = before.spellings()
FOLDED = """
CREATE OR REPLACE FUNCTION memories_folded(body text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN body ~ '{}' THEN translate(normalize(body, NFKC), '{}', '{}') ELSE normalize(body, NFKC) END
""".format(before.HAS_SOME, f"\u0901{replaced}\u093c", f"\u0902{by}")

# In Turkish, I may be the capital of a letter without a dot: a text that is, or looks like it, is also read that way.
WORDS = f"""
CREATE OR REPLACE FUNCTION memories_words(language regconfig, who text, content text, about text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
    named tsvector := setweight(to_tsvector(language, memories_folded(who)), 'A');
    said text := content || ' ' || about;
BEGIN
    IF content ~ 'I' AND (language = 'pg_catalog.turkish'::regconfig OR content ~ '[ığİĞ]') THEN
        said := said || ' ' || translate(content, 'I', 'ı');
    END IF;
    IF octet_length(who || said) = length(who || said) THEN
        RETURN named || memories_cut(language, said);
    END IF;
    said := memories_folded(said);
    IF normalize(who || content || about, NFKC) ~ '[{planned.WITHOUT_SPACES}{before.SYMBOLS}]' THEN
        RETURN named || memories_cut(language, regexp_replace(said, '[{planned.WITHOUT_SPACES}]+', ' ', 'g'))
               || array_to_tsvector(memories_pieces(memories_folded(who || ' ' || content || ' ' || about)));
    END IF;
    RETURN named || memories_cut(language, said);
END $$
"""

# Only what may come out differently now is looked at.
ANEW = (
    r"""
UPDATE memories_chunk SET language = language
WHERE (who || content || about ~ '[\u0901\u093C\u0958-\u095F]'
       OR content ~ 'I' AND (language = 'pg_catalog.turkish'::regconfig OR content ~ '[ığİĞ]'))
  AND words <> memories_words(language, who, content, about)
""",
    "UPDATE memories_procedure SET language = language WHERE words <> memories_words(language, name, trigger, '')",
)


class Migration(migrations.Migration):
    dependencies = [("memories", "0021_no_golden_text_in_statistics")]

    operations = [
        migrations.RunSQL(FOLDED, before.FOLDED),
        migrations.RunSQL(WORDS, planned.WORDS),
        migrations.RunSQL(ANEW, migrations.RunSQL.noop),
    ]
