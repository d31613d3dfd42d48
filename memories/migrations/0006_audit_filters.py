import django.contrib.postgres.indexes
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("instances", "0001_tables"),
        ("memories", "0005_find_shared_memories"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(models.F("instance"), models.F("actor"), models.F("id"), name="audit_by_actor"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(models.F("instance"), models.F("action"), models.F("id"), name="audit_by_action"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=django.contrib.postgres.indexes.GinIndex(
                models.F("instance"), models.F("memory_ids"), name="audit_of_memory"
            ),
        ),
    ]
