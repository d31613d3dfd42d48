from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("instances", "0002_part_of_a_vector_index"),
        ("memories", "0019_how_it_is_said"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("instance"),
                models.F("access_count"),
                models.F("id"),
                condition=models.Q(access_count__gt=0),
                name="memory_recalled",
            ),
        ),
    ]
