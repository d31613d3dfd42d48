from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("instances", "0001_tables"),
    ]

    operations = [
        migrations.AddField(
            model_name="instance",
            name="indexed_up_to",
            field=models.UUIDField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="instance",
            name="indexed_depth",
            field=models.PositiveSmallIntegerField(default=0),
        ),
    ]
