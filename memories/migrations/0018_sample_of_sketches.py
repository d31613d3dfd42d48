import django.db.models.lookups
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("instances", "0002_part_of_a_vector_index"),
        ("memories", "0017_words_planned_once"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="embedding",
            index=models.Index(
                models.F("instance"),
                models.F("generation"),
                models.F("chunk_id"),
                condition=models.Q(
                    django.db.models.lookups.LessThan(
                        models.Func(
                            models.Func("chunk_id", function="uuid_send"),
                            15,
                            function="get_byte",
                            output_field=models.IntegerField(),
                        ),
                        4,
                    ),
                    ("live", True),
                ),
                include=("bits",),
                name="embedding_sample",
            ),
        ),
    ]
