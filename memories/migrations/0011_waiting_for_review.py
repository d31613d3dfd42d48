from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("instances", "0001_tables"),
        ("memories", "0010_jobs_of_conversations"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("instance"), models.F("id"), condition=models.Q(("review", "pending")), name="memory_to_review"
            ),
        ),
    ]
