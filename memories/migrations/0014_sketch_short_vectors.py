import django.db.models.functions.comparison
import pgvector.django.bit
from django.db import migrations, models

# Models of up to 384 dimensions leave three quarters of a vector empty, and of its sketch. There each dimension gets
# four bits instead of one: whether it is above -s, -s/3, s/3 and s, where s = 1/sqrt(384) is how far it usually is from
# zero. An expression, not a query: PostgreSQL can then inline it, and compute what does not depend on the vector once.
ABOVE = "binary_quantize(subvector(v, 1, 384) - array_fill({}::real, ARRAY[384])::halfvec)"
SKETCH = f"""
CREATE FUNCTION memories_sketch(v halfvec) RETURNS bit LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN l2_norm(subvector(v, 385, 1152)) > 0 THEN binary_quantize(v)
    ELSE {ABOVE.format(-0.051)} || {ABOVE.format(-0.017)} || {ABOVE.format(0.017)} || {ABOVE.format(0.051)}
END
"""


class Migration(migrations.Migration):
    dependencies = [
        ("instances", "0001_tables"),
        ("memories", "0013_duplicate_pairs"),
    ]

    operations = [
        migrations.RunSQL(SKETCH, "DROP FUNCTION memories_sketch(halfvec)"),
        # The vector indexes of huge instances are over the column that goes; the job builds them again.
        migrations.RunSQL("UPDATE instances_instance SET indexed_generation = 0", migrations.RunSQL.noop),
        migrations.RemoveIndex(model_name="embedding", name="embedding_scan"),
        migrations.RemoveField(model_name="embedding", name="bits"),
        migrations.AddField(
            model_name="embedding",
            name="bits",
            field=models.GeneratedField(
                db_persist=True,
                expression=django.db.models.functions.comparison.Cast(
                    models.Func(models.F("vector"), function="memories_sketch"),
                    pgvector.django.bit.BitField(length=1536),
                ),
                output_field=pgvector.django.bit.BitField(length=1536),
            ),
        ),
        # Beside a vector that stays in its row, PostgreSQL would move the bits out of it.
        migrations.RunSQL(
            "ALTER TABLE memories_embedding ALTER COLUMN bits SET STORAGE PLAIN", migrations.RunSQL.noop
        ),
        migrations.AddIndex(
            model_name="embedding",
            index=models.Index(
                models.F("instance"),
                models.F("generation"),
                models.F("chunk_id"),
                condition=models.Q(("live", True)),
                include=("bits", "memory_id"),
                name="embedding_scan",
            ),
        ),
    ]
