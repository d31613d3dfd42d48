import django.db.models.deletion
import memoryconsole.ids
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("instances", "0001_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="Conversation",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id", "id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("id", models.UUIDField(default=memoryconsole.ids.uuid7, editable=False)),
                ("external_id", models.CharField(blank=True, default="", max_length=200)),
                ("channel", models.CharField(blank=True, default="", max_length=64)),
                ("owner", models.CharField(blank=True, default="", max_length=200)),
                ("title", models.CharField(blank=True, default="", max_length=200)),
                ("message_count", models.PositiveIntegerField(default=0)),
                ("summary", models.TextField(blank=True, default="")),
                ("summarised_through", models.PositiveIntegerField(default=0)),
                ("extracted_through", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField()),
                ("last_message_at", models.DateTimeField()),
                ("closed_at", models.DateTimeField(null=True)),
                (
                    "instance",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="instances.instance",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        models.F("instance"), models.F("last_message_at"), models.F("id"), name="conversation_recent"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("external_id", ""), _negated=True),
                        fields=("instance", "external_id"),
                        name="conversation_external_id_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id", "id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("id", models.UUIDField(default=memoryconsole.ids.uuid7, editable=False)),
                ("conversation_id", models.UUIDField()),
                ("position", models.PositiveIntegerField()),
                (
                    "role",
                    models.CharField(
                        choices=[("user", "User"), ("assistant", "Assistant"), ("system", "System"), ("tool", "Tool")],
                        max_length=16,
                    ),
                ),
                ("content", models.TextField()),
                ("external_id", models.CharField(blank=True, default="", max_length=200)),
                ("created_at", models.DateTimeField()),
                (
                    "instance",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="instances.instance",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("instance", "conversation_id", "position"), name="message_position_once"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("external_id", ""), _negated=True),
                        fields=("instance", "conversation_id", "external_id"),
                        name="message_external_id_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["user", "assistant", "system", "tool"])),
                        name="message_role_known",
                        violation_error_message="Choose user, assistant, system or tool.",
                    ),
                ],
            },
        ),
    ]
