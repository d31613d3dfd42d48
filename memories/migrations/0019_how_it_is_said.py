import importlib

from django.db import migrations, models

from memories.models.words import FirstWord, IsQuestion, IsTurn

before = importlib.import_module("memories.migrations.0015_find_parts_and_spellings")

# The pieces that stand for words in scripts without spaces, and what belongs to a word though it is no letter.
# PostgreSQL takes the longest alternative, not the first.
UNSPACED = f"[{before.IDEOGRAPHS}]{{2}}|[{before.ALPHABETS}]{{3}}"
MARKS = (
    r"\u0300-\u036F\u0483-\u0487\u0591-\u05C7\u0610-\u061A\u064B-\u065F\u0670\u06D6-\u06ED\u0900-\u0963\u0971-\u0DFF"
)
FUNCTIONS = [
    f"""
CREATE FUNCTION memories_first_word(content text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(lower(substring(left(content, 40), '{UNSPACED}|(?!{UNSPACED})[\\w{MARKS}]+')), '')
""",
    """
CREATE FUNCTION memories_is_turn(who text, content text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN who <> '' AND (strpos(left(content, 300), who || ':') > 0 OR strpos(left(content, 300), who || '：') > 0)
""",
    """
CREATE FUNCTION memories_is_question(content text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN right(content, 1) IN ('?', '？', '؟')
""",
]
NO_FUNCTIONS = """
DROP FUNCTION memories_first_word(text), memories_is_turn(text, text), memories_is_question(text)
"""
# All at once, because each would write the table anew. No samples of a text: they would outlive its deletion.
COLUMNS = """
ALTER TABLE memories_chunk
    ADD COLUMN first_word text NOT NULL GENERATED ALWAYS AS (memories_first_word(content)) STORED,
    ADD COLUMN turn boolean NOT NULL GENERATED ALWAYS AS (memories_is_turn(who, content)) STORED,
    ADD COLUMN question boolean NOT NULL GENERATED ALWAYS AS (memories_is_question(content)) STORED,
    ALTER COLUMN first_word SET STATISTICS 0
"""
NO_COLUMNS = "ALTER TABLE memories_chunk DROP COLUMN first_word, DROP COLUMN turn, DROP COLUMN question"


def added(name: str, expression: models.Func) -> migrations.AddField:
    field = models.GeneratedField(expression=expression, output_field=expression.output_field, db_persist=True)
    return migrations.AddField("chunk", name, field)


class Migration(migrations.Migration):
    dependencies = [("memories", "0018_sample_of_sketches")]

    operations = [
        migrations.RunSQL(FUNCTIONS, NO_FUNCTIONS),
        migrations.RunSQL(
            COLUMNS,
            NO_COLUMNS,
            state_operations=[
                added("first_word", FirstWord(models.F("content"))),
                added("turn", IsTurn(models.F("who"), models.F("content"))),
                added("question", IsQuestion(models.F("content"))),
            ],
        ),
    ]
