from django.db import migrations, models

from memoryconsole.tenancy import part_of


class Migration(migrations.Migration):

    dependencies = [
        ("conversations", "0004_key_made_last_again"),
        ("memories", "0009_recall"),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='attempts',
            field=models.PositiveSmallIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='job',
            name='conversation_id',
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name='job',
            name='result',
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name='job',
            name='started_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='job',
            name='tokens',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(models.F('instance'), models.F('conversation_id'), models.F('id'), condition=models.Q(('conversation_id__isnull', False)), name='job_of_conversation'),
        ),
        part_of("memories_job", "conversation_id", "conversations_conversation"),
    ]
