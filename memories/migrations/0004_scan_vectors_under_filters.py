from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('instances', '0001_tables'),
        ("memories", "0003_database_rules"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='embedding',
            name='embedding_bits',
        ),
        migrations.AddIndex(
            model_name='embedding',
            index=models.Index(models.F('instance'), models.F('generation'), models.F('chunk_id'), condition=models.Q(('live', True)), include=('bits', 'memory_id'), name='embedding_scan'),
        ),
    ]
