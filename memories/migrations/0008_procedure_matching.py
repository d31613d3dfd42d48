import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import pgvector.django.halfvec
from django.db import migrations, models

import memories.models
from memoryconsole.tenancy import key_made_last, owned_by_instance, part_of

IN_ITS_LANGUAGE = """
UPDATE memories_procedure p SET language = i.language::regconfig FROM instances_instance i WHERE i.id = p.instance_id
"""


class Migration(migrations.Migration):
    dependencies = [("instances", "0001_tables"), ("memories", "0007_no_text_in_statistics")]

    operations = [
        migrations.AddField(
            model_name="procedure",
            name="language",
            field=memories.models.Language(default="simple"),
            preserve_default=False,
        ),
        migrations.RunSQL(IN_ITS_LANGUAGE, migrations.RunSQL.noop),
        migrations.AddField(
            model_name="procedure",
            name="words",
            field=models.GeneratedField(
                db_persist=True,
                expression=memories.models.Words(
                    models.F("language"), models.F("name"), models.F("trigger"), models.Value("")
                ),
                output_field=django.contrib.postgres.search.SearchVectorField(),
            ),
        ),
        migrations.AddIndex(
            model_name="procedure",
            index=django.contrib.postgres.indexes.GinIndex(
                models.F("instance"), models.F("words"), name="procedure_words"
            ),
        ),
        migrations.CreateModel(
            name="ProcedureVector",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id",
                        "procedure_id",
                        "generation",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("procedure_id", models.UUIDField()),
                ("generation", models.SmallIntegerField()),
                ("vector", pgvector.django.halfvec.HalfVectorField(dimensions=1536)),
                (
                    "instance",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="instances.instance",
                    ),
                ),
            ],
        ),
        key_made_last("memories_procedure"),
        *owned_by_instance("memories_procedurevector"),
        part_of("memories_procedurevector", "procedure_id", "memories_procedure"),
        # As for the other texts: samples of what was deleted would stay behind.
        migrations.RunSQL(
            "ALTER TABLE memories_procedure ALTER COLUMN words SET STATISTICS 0, ALTER COLUMN name SET STATISTICS 0",
            "ALTER TABLE memories_procedure ALTER COLUMN name SET STATISTICS -1",
        ),
        migrations.RunSQL(
            "ALTER TABLE memories_procedurevector ALTER COLUMN vector SET STORAGE PLAIN", migrations.RunSQL.noop
        ),
    ]
