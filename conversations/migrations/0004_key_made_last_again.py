from django.db import migrations


class Migration(migrations.Migration):
    """The index before this one must not be newer than the primary key: see `tenancy.key_made_last`.

    Foreign keys refer to it by now, so it is built again beside itself, which no transaction may contain.
    """

    atomic = False
    dependencies = [("conversations", "0003_time_zone_and_episodes")]

    operations = [
        migrations.RunSQL(
            "REINDEX INDEX CONCURRENTLY conversations_conversation_pkey",
            migrations.RunSQL.noop,
        )
    ]
