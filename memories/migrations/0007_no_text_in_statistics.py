from django.db import migrations

# ANALYZE keeps samples of a column's values, which would outlive a deletion; nothing is ever planned by these.
TEXTS = {
    "memories_memory": ("content", "summary", "evidence", "supersede_reason", "embedding_error"),
    "memories_memoryversion": ("content", "summary", "reason", "key", "tags"),
    "memories_chunk": ("content", "about"),
    "memories_wordfrequency": ("word",),
    "memories_recall": ("query", "explanation"),
    "memories_procedure": ("trigger", "steps"),
    "memories_attachment": ("name",),
    "conversations_conversation": ("title", "summary"),
    "conversations_message": ("content",),
}


def statistics(table: str, columns: tuple[str, ...], target: int) -> str:
    return f"ALTER TABLE {table} " + ", ".join(f"ALTER COLUMN {column} SET STATISTICS {target}" for column in columns)


class Migration(migrations.Migration):
    dependencies = [("memories", "0006_audit_filters"), ("conversations", "0002_database_rules")]

    operations = [
        migrations.RunSQL(statistics(table, columns, 0), statistics(table, columns, -1))
        for table, columns in TEXTS.items()
    ]
