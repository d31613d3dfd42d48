from django.db import migrations


class Migration(migrations.Migration):
    """As in 0007: the planner's statistics keep samples of a column, which stay when its row is deleted."""

    dependencies = [("memories", "0020_recalled_most")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE memories_goldenquery ALTER COLUMN query SET STATISTICS 0",
            "ALTER TABLE memories_goldenquery ALTER COLUMN query SET STATISTICS -1",
        ),
    ]
