import django.db.models.deletion
from django.db import migrations, models

import memoryconsole.ids
from memoryconsole.tenancy import owned_by_instance, part_of


class Migration(migrations.Migration):
    dependencies = [
        ("instances", "0001_tables"),
        ("memories", "0012_jobs_by_state"),
    ]

    operations = [
        migrations.CreateModel(
            name="DuplicatePair",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id", "id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("id", models.UUIDField(default=memoryconsole.ids.uuid7, editable=False)),
                ("first_id", models.UUIDField()),
                ("second_id", models.UUIDField()),
                ("cosine", models.FloatField()),
                (
                    "kind",
                    models.CharField(
                        choices=[("duplicate", "Duplicate"), ("conflict", "Possible conflict")], max_length=16
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "Open"), ("dismissed", "Both are kept")], default="open", max_length=16
                    ),
                ),
                ("found_at", models.DateTimeField()),
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
                    models.Index(models.F("instance"), models.F("second_id"), name="pair_of_second"),
                    models.Index(
                        models.F("instance"),
                        models.F("cosine"),
                        models.F("id"),
                        condition=models.Q(("state", "open")),
                        name="pair_open",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("instance", "first_id", "second_id"), name="pair_once"),
                    models.CheckConstraint(
                        condition=models.Q(("first_id__lt", models.F("second_id"))), name="pair_older_first"
                    ),
                ],
            },
        ),
        *owned_by_instance("memories_duplicatepair"),
        part_of("memories_duplicatepair", "first_id", "memories_memory"),
        part_of("memories_duplicatepair", "second_id", "memories_memory"),
    ]
