from typing import Any

import django.db.models.deletion
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models import F

import memoryconsole.ids
from memoryconsole.tenancy import key_made_last, owned_by_instance, part_of


def owned() -> list[tuple[str, Any]]:
    return [
        (
            "pk",
            models.CompositePrimaryKey(
                "instance_id", "id", blank=True, editable=False, primary_key=True, serialize=False
            ),
        ),
        ("id", models.UUIDField(default=memoryconsole.ids.uuid7, editable=False)),
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
    ]


class Migration(migrations.Migration):
    dependencies = [("instances", "0001_tables"), ("memories", "0008_procedure_matching")]

    operations = [
        migrations.CreateModel(
            name="RecallUse",
            fields=[
                *owned(),
                ("memory_ids", ArrayField(base_field=models.UUIDField(), size=None)),
                ("created_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="GoldenQuery",
            fields=[
                *owned(),
                ("query", models.TextField()),
                ("owner", models.CharField(blank=True, default="", max_length=200)),
                ("query_hash", models.BinaryField(max_length=32)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("instance", "query_hash"), name="golden_query_once")]
            },
        ),
        migrations.CreateModel(
            name="GoldenMark",
            fields=[
                *owned(),
                ("golden_id", models.UUIDField()),
                ("memory_id", models.UUIDField()),
                ("expected", models.BooleanField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("instance", "golden_id", "memory_id"), name="golden_mark_once")
                ],
                "indexes": [models.Index(F("instance"), F("memory_id"), name="golden_mark_of_memory")],
            },
        ),
        migrations.AddIndex(
            "memory",
            models.Index(
                F("instance"), F("role"), F("id"), condition=models.Q(("listed", True)), name="memory_by_role"
            ),
        ),
        key_made_last("memories_goldenquery"),
        *owned_by_instance("memories_recalluse", "memories_goldenquery", "memories_goldenmark"),
        part_of("memories_goldenmark", "golden_id", "memories_goldenquery"),
        part_of("memories_goldenmark", "memory_id", "memories_memory"),
    ]
