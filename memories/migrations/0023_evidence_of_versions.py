from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memories", "0022_spellings_of_hindi_and_turkish")]

    operations = [
        migrations.AddField("memoryversion", "confidence", models.FloatField(null=True)),
        migrations.AddField("memoryversion", "evidence", models.JSONField(null=True)),
        # As in 0007: samples of a text would stay when its row is deleted.
        migrations.RunSQL(
            "ALTER TABLE memories_memoryversion ALTER COLUMN evidence SET STATISTICS 0",
            "ALTER TABLE memories_memoryversion ALTER COLUMN evidence SET STATISTICS -1",
        ),
    ]
