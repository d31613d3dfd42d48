from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conversations", "0002_database_rules")]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="time_zone",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
        migrations.AddField(
            model_name="conversation",
            name="told_through",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                models.F("instance"),
                models.F("last_message_at"),
                condition=models.Q(("told_through__lt", models.F("message_count"))),
                name="conversation_untold",
            ),
        ),
    ]
