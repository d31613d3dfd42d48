from django.db import migrations, models

# They were over sketches. The job builds new ones.
DROP = """
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT relname FROM pg_class WHERE relkind = 'i' AND starts_with(relname, 'embedding_of_') LOOP
        EXECUTE format('DROP INDEX %I', name);
    END LOOP;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [
        ("instances", "0002_part_of_a_vector_index"),
    ]

    operations = [
        migrations.AddField(
            model_name="instance",
            name="indexed_dimensions",
            field=models.PositiveSmallIntegerField(default=0),
        ),
        migrations.RunSQL(DROP, migrations.RunSQL.noop),
        migrations.RunSQL(
            "UPDATE instances_instance SET indexed_generation = 0, indexed_up_to = NULL, indexed_depth = 0",
            migrations.RunSQL.noop,
        ),
    ]
