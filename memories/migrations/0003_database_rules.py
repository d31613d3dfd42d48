from django.db import migrations

from memoryconsole.tenancy import key_made_last, owned_by_instance, part_of, points_to

# Statement triggers: one appended row per category and statement, however many memories the statement touches.
COLUMNS = "instance_id, category, visibility, listed"
COME = f"SELECT {COLUMNS}, 1 AS change FROM come"
GONE = f"SELECT {COLUMNS}, -1 AS change FROM gone"


def count(operation: str, rows: str, tables: str) -> migrations.RunSQL:
    name = operation.lower()
    return migrations.RunSQL(
        f"""
        CREATE FUNCTION memories_count_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO memories_memorycount (instance_id, id, category, private, delta)
            SELECT instance_id, gen_random_uuid(), category, visibility = 'private', sum(change)
            FROM ({rows}) AS rows
            WHERE listed
            GROUP BY instance_id, category, visibility = 'private'
            HAVING sum(change) <> 0;
            RETURN NULL;
        END $$;
        CREATE TRIGGER memories_count_{name} AFTER {operation} ON memories_memory
        REFERENCING {tables} FOR EACH STATEMENT EXECUTE FUNCTION memories_count_{name}();
        """,
        f"DROP TRIGGER memories_count_{name} ON memories_memory; DROP FUNCTION memories_count_{name}();",
    )


class Migration(migrations.Migration):
    dependencies = [("memories", "0002_tables"), ("conversations", "0002_database_rules")]

    operations = [
        key_made_last("memories_memory"),
        key_made_last("memories_memoryversion"),
        key_made_last("memories_chunk"),
        key_made_last("memories_embedding", "chunk_id", "generation"),
        *owned_by_instance(
            "memories_memory",
            "memories_memoryversion",
            "memories_chunk",
            "memories_embedding",
            "memories_wordfrequency",
            "memories_job",
            "memories_memorycount",
            "memories_milestone",
            "memories_procedure",
            "memories_attachment",
            "memories_recall",
            "memories_auditentry",
        ),
        points_to("memories_memory", "source_conversation_id", "conversations_conversation"),
        points_to("memories_memory", "superseded_by_id", "memories_memory"),
        points_to("memories_memory", "conflicts_with_id", "memories_memory"),
        part_of("memories_memoryversion", "memory_id", "memories_memory"),
        part_of("memories_chunk", "memory_id", "memories_memory"),
        part_of("memories_chunk", "version_id", "memories_memoryversion"),
        part_of("memories_embedding", "chunk_id", "memories_chunk"),
        part_of("memories_attachment", "memory_id", "memories_memory"),
        points_to("memories_recall", "conversation_id", "conversations_conversation"),
        migrations.RunSQL(
            "ALTER TABLE memories_embedding ALTER COLUMN vector SET STORAGE PLAIN", migrations.RunSQL.noop
        ),
        count("INSERT", COME, "NEW TABLE AS come"),
        count("DELETE", GONE, "OLD TABLE AS gone"),
        count("UPDATE", f"{COME} UNION ALL {GONE}", "OLD TABLE AS gone NEW TABLE AS come"),
    ]
