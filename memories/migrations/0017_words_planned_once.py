import importlib

from django.db import migrations

before = importlib.import_module("memories.migrations.0015_find_parts_and_spellings")
WITHOUT_SPACES = f"{before.ALPHABETS}{before.IDEOGRAPHS}"

# As an expression, PostgreSQL planned it anew for every statement that writes a row, which took three times as long as
# the rest of the statement. A session plans these once. The same words come out.
# A backup is restored without a search path: the function brings its own, to find the others.
WORDS = f"""
CREATE OR REPLACE FUNCTION memories_words(language regconfig, who text, content text, about text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
    named tsvector := setweight(to_tsvector(language, memories_folded(who)), 'A');
    said text := content || ' ' || about;
BEGIN
    IF octet_length(who || said) = length(who || said) THEN
        RETURN named || memories_cut(language, said);
    END IF;
    said := memories_folded(said);
    IF normalize(who || content || about, NFKC) ~ '[{WITHOUT_SPACES}{before.SYMBOLS}]' THEN
        RETURN named || memories_cut(language, regexp_replace(said, '[{WITHOUT_SPACES}]+', ' ', 'g'))
               || array_to_tsvector(memories_pieces(memories_folded(who || ' ' || content || ' ' || about)));
    ELSIF content ~ '[ığİ]' AND content ~ 'I' THEN
        RETURN named || memories_cut(language, said || ' ' || translate(memories_folded(content), 'I', 'ı'));
    END IF;
    RETURN named || memories_cut(language, said);
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("memories", "0016_words_soon_in_their_index")]

    operations = [migrations.RunSQL(WORDS, before.WORDS)]
