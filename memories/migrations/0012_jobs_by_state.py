from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("instances", "0001_tables"),
        ("memories", "0011_waiting_for_review"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="job",
            index=models.Index(models.F("instance"), models.F("state"), models.F("id"), name="job_by_state"),
        ),
    ]
