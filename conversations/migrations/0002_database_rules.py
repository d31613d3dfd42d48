from django.db import migrations

from memoryconsole.tenancy import key_made_last, owned_by_instance, part_of


class Migration(migrations.Migration):
    dependencies = [("conversations", "0001_tables")]

    operations = [
        key_made_last("conversations_conversation"),
        key_made_last("conversations_message"),
        *owned_by_instance("conversations_conversation", "conversations_message"),
        part_of("conversations_message", "conversation_id", "conversations_conversation"),
    ]
