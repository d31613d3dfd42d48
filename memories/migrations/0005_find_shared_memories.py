from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('instances', '0001_tables'),
        ("memories", "0004_scan_vectors_under_filters"),
    ]

    operations = [
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(models.F('instance'), models.F('id'), condition=models.Q(('visibility__in', ['team', 'org'])), name='memory_shared'),
        ),
    ]
