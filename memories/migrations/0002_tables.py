import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.comparison
import memories.models
import memoryconsole.ids
import pgvector.django.bit
import pgvector.django.halfvec
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("instances", "0001_tables"),
        ("memories", "0001_functions"),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id", "id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("id", models.UUIDField(default=memoryconsole.ids.uuid7, editable=False)),
                ("action", models.CharField(max_length=40)),
                ("actor", models.CharField(max_length=200)),
                (
                    "memory_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, size=None),
                ),
                ("detail", models.JSONField(default=dict)),
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
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id", "id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("id", models.UUIDField(default=memoryconsole.ids.uuid7, editable=False)),
                ("kind", models.CharField(max_length=40)),
                (
                    "state",
                    models.CharField(
                        choices=[("queued", "Queued"), ("running", "Running"), ("done", "Done"), ("failed", "Failed")],
                        default="queued",
                        max_length=16,
                    ),
                ),
                ("actor", models.CharField(max_length=200)),
                ("payload", models.JSONField(default=dict)),
                ("done", models.PositiveIntegerField(default=0)),
                ("total", models.PositiveIntegerField(default=0)),
                ("error", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
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
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="WordFrequency",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id", "word", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("word", models.TextField()),
                ("chunks", models.PositiveIntegerField()),
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
        ),
        migrations.CreateModel(
            name="Attachment",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id", "id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("id", models.UUIDField(default=memoryconsole.ids.uuid7, editable=False)),
                ("memory_id", models.UUIDField()),
                ("name", models.CharField(max_length=255)),
                ("content_type", models.CharField(max_length=127)),
                ("size", models.PositiveBigIntegerField()),
                ("sha256", models.BinaryField(max_length=32)),
                ("path", models.CharField(max_length=255)),
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
                "indexes": [models.Index(models.F("instance"), models.F("memory_id"), name="attachment_of_memory")],
            },
        ),
        migrations.CreateModel(
            name="Chunk",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id", "id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("id", models.UUIDField(default=memoryconsole.ids.uuid7, editable=False)),
                ("memory_id", models.UUIDField()),
                ("version_id", models.UUIDField(null=True)),
                ("position", models.PositiveSmallIntegerField()),
                ("category", models.CharField(max_length=16)),
                ("live", models.BooleanField()),
                ("language", memories.models.Language()),
                ("who", models.CharField(blank=True, default="", max_length=200)),
                ("content", models.TextField()),
                ("about", models.TextField(blank=True, default="")),
                ("text_hash", models.BinaryField(max_length=32)),
                ("length", models.PositiveSmallIntegerField()),
                (
                    "words",
                    models.GeneratedField(
                        db_persist=True,
                        expression=memories.models.Words(
                            models.F("language"), models.F("who"), models.F("content"), models.F("about")
                        ),
                        output_field=django.contrib.postgres.search.SearchVectorField(),
                    ),
                ),
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
                        models.F("instance"), models.F("memory_id"), models.F("position"), name="chunk_of_memory"
                    ),
                    models.Index(
                        models.F("instance"),
                        models.F("version_id"),
                        condition=models.Q(("version_id__isnull", False)),
                        name="chunk_of_version",
                    ),
                    models.Index(models.F("instance"), models.F("text_hash"), name="chunk_same_text"),
                    django.contrib.postgres.indexes.GinIndex(
                        models.F("instance"), models.F("words"), name="chunk_words"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Embedding",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id",
                        "chunk_id",
                        "generation",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("chunk_id", models.UUIDField()),
                ("generation", models.SmallIntegerField()),
                ("memory_id", models.UUIDField()),
                ("live", models.BooleanField()),
                ("vector", pgvector.django.halfvec.HalfVectorField(dimensions=1536)),
                (
                    "bits",
                    models.GeneratedField(
                        db_persist=True,
                        expression=django.db.models.functions.comparison.Cast(
                            models.Func(models.F("vector"), function="binary_quantize"),
                            pgvector.django.bit.BitField(length=1536),
                        ),
                        output_field=pgvector.django.bit.BitField(length=1536),
                    ),
                ),
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
                        models.F("instance"),
                        models.F("generation"),
                        models.F("chunk_id"),
                        condition=models.Q(("live", True)),
                        include=("bits",),
                        name="embedding_bits",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Memory",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id", "id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("id", models.UUIDField(default=memoryconsole.ids.uuid7, editable=False)),
                ("key", models.CharField(blank=True, default="", max_length=200)),
                ("content", models.TextField()),
                ("summary", models.TextField(blank=True, default="")),
                (
                    "category",
                    models.CharField(
                        choices=[
                            ("general", "General"),
                            ("preference", "Preference"),
                            ("fact", "Fact"),
                            ("event", "Event"),
                            ("relationship", "Relationship"),
                            ("decision", "Decision"),
                        ],
                        default="general",
                        max_length=16,
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("identity", "Identity"),
                            ("lesson", "Lesson"),
                            ("decision", "Decision"),
                            ("context", "Context"),
                            ("reference", "Reference"),
                            ("historical", "Historical"),
                        ],
                        default="context",
                        max_length=16,
                    ),
                ),
                ("importance", models.SmallIntegerField(default=5)),
                ("confidence", models.FloatField(default=1.0)),
                (
                    "tags",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), blank=True, default=list, size=None
                    ),
                ),
                ("pinned", models.BooleanField(default=False)),
                (
                    "visibility",
                    models.CharField(
                        choices=[
                            ("private", "Private: its owner only"),
                            ("instance", "Instance"),
                            ("team", "Team"),
                            ("org", "Organisation"),
                        ],
                        default="instance",
                        max_length=16,
                    ),
                ),
                ("owner", models.CharField(blank=True, default="", max_length=200)),
                ("source", models.CharField(default="manual", max_length=32)),
                ("source_conversation_id", models.UUIDField(null=True)),
                ("conversation_position", models.PositiveIntegerField(default=0)),
                (
                    "source_message_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), blank=True, default=list, size=None
                    ),
                ),
                ("occurred_at", models.DateTimeField(null=True)),
                ("channel", models.CharField(blank=True, default="", max_length=64)),
                ("expires_at", models.DateTimeField(null=True)),
                ("evidence", models.JSONField(blank=True, default=dict)),
                (
                    "status",
                    models.CharField(
                        choices=[("active", "Active"), ("superseded", "Superseded")], default="active", max_length=16
                    ),
                ),
                ("superseded_by_id", models.UUIDField(null=True)),
                ("supersede_reason", models.TextField(blank=True, default="")),
                (
                    "review",
                    models.CharField(
                        choices=[("approved", "Approved"), ("pending", "Waiting for review")],
                        default="approved",
                        max_length=16,
                    ),
                ),
                ("conflicts_with_id", models.UUIDField(null=True)),
                (
                    "listed",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.ExpressionWrapper(
                            models.Q(("review", "approved"), ("status", "active")), models.BooleanField()
                        ),
                        output_field=models.BooleanField(),
                    ),
                ),
                (
                    "embedding",
                    models.CharField(
                        choices=[("ready", "Ready"), ("pending", "Pending"), ("failed", "Failed")],
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("embedding_error", models.TextField(blank=True, default="")),
                ("content_hash", models.BinaryField(max_length=32)),
                ("access_count", models.PositiveIntegerField(default=0)),
                ("last_accessed_at", models.DateTimeField(null=True)),
                ("last_seen_at", models.DateTimeField()),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
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
                        models.F("instance"),
                        models.F("category"),
                        models.F("id"),
                        condition=models.Q(("listed", True)),
                        name="memory_by_category",
                    ),
                    models.Index(
                        models.F("instance"),
                        models.F("importance"),
                        models.F("id"),
                        condition=models.Q(("listed", True)),
                        name="memory_by_importance",
                    ),
                    models.Index(
                        models.F("instance"), models.F("id"), condition=models.Q(("pinned", True)), name="memory_pinned"
                    ),
                    models.Index(
                        models.F("instance"),
                        models.F("owner"),
                        models.F("id"),
                        condition=models.Q(("owner", ""), _negated=True),
                        name="memory_by_owner",
                    ),
                    models.Index(
                        models.F("instance"),
                        models.F("id"),
                        condition=models.Q(("visibility", "private")),
                        name="memory_private",
                    ),
                    models.Index(
                        models.F("instance"),
                        models.F("id"),
                        condition=models.Q(("embedding", "ready"), _negated=True),
                        name="memory_not_embedded",
                    ),
                    models.Index(
                        models.F("instance"),
                        models.F("id"),
                        condition=models.Q(("listed", True), _negated=True),
                        name="memory_unlisted",
                    ),
                    models.Index(
                        models.F("instance"),
                        models.F("expires_at"),
                        condition=models.Q(("expires_at__isnull", False)),
                        name="memory_expiring",
                    ),
                    models.Index(
                        models.F("instance"),
                        models.F("occurred_at"),
                        condition=models.Q(("occurred_at__isnull", False)),
                        name="memory_occurred",
                    ),
                    models.Index(
                        models.F("instance"),
                        models.F("source_conversation_id"),
                        models.F("conversation_position"),
                        condition=models.Q(("source_conversation_id__isnull", False)),
                        name="memory_of_conversation",
                    ),
                    models.Index(models.F("instance"), models.F("content_hash"), name="memory_same_content"),
                    models.Index(
                        models.F("instance"),
                        models.F("superseded_by_id"),
                        condition=models.Q(("superseded_by_id__isnull", False)),
                        name="memory_superseded_by",
                    ),
                    models.Index(
                        models.F("instance"),
                        models.F("conflicts_with_id"),
                        condition=models.Q(("conflicts_with_id__isnull", False)),
                        name="memory_conflicts_with",
                    ),
                    django.contrib.postgres.indexes.GinIndex(
                        models.F("instance"),
                        models.F("tags"),
                        condition=models.Q(("tags", []), _negated=True),
                        name="memory_tagged",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("importance__range", (1, 10))),
                        name="memory_importance_1_to_10",
                        violation_error_message="Importance is a whole number from 1 to 10.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("confidence__range", (0, 1))),
                        name="memory_confidence_0_to_1",
                        violation_error_message="Confidence is a number from 0 to 1.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("content", ""), _negated=True),
                        name="memory_content_not_empty",
                        violation_error_message="Content may not be empty.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("category__in", ["general", "preference", "fact", "event", "relationship", "decision"])
                        ),
                        name="memory_category_known",
                        violation_error_message="Choose one of: general, preference, fact, event, relationship, decision.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("role__in", ["identity", "lesson", "decision", "context", "reference", "historical"])
                        ),
                        name="memory_role_known",
                        violation_error_message="Choose one of: identity, lesson, decision, context, reference, historical.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("visibility__in", ["private", "instance", "team", "org"])),
                        name="memory_visibility_known",
                        violation_error_message="Choose one of: private, instance, team, org.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["active", "superseded"])),
                        name="memory_status_known",
                        violation_error_message="Choose one of: active, superseded.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("review__in", ["approved", "pending"])),
                        name="memory_review_known",
                        violation_error_message="Choose one of: approved, pending.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("embedding__in", ["ready", "pending", "failed"])),
                        name="memory_embedding_known",
                        violation_error_message="Choose one of: ready, pending, failed.",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "active"), models.Q(("key", ""), _negated=True)),
                        fields=("instance", "owner", "key"),
                        name="memory_active_key_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MemoryCount",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id", "id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("id", models.UUIDField(default=memoryconsole.ids.uuid7, editable=False)),
                ("category", models.CharField(max_length=16)),
                ("private", models.BooleanField()),
                ("delta", models.BigIntegerField()),
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
                        models.F("instance"),
                        models.F("category"),
                        models.F("private"),
                        include=("delta",),
                        name="memory_count_sum",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="MemoryVersion",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id", "id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("id", models.UUIDField(default=memoryconsole.ids.uuid7, editable=False)),
                ("memory_id", models.UUIDField()),
                ("number", models.PositiveIntegerField()),
                ("key", models.CharField(blank=True, default="", max_length=200)),
                ("content", models.TextField()),
                ("summary", models.TextField(blank=True, default="")),
                ("category", models.CharField(max_length=16)),
                ("role", models.CharField(max_length=16)),
                ("importance", models.SmallIntegerField()),
                (
                    "tags",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), blank=True, default=list, size=None
                    ),
                ),
                ("reason", models.TextField(blank=True, default="")),
                ("actor", models.CharField(max_length=200)),
                ("similarity", models.FloatField(null=True)),
                ("source_message_id", models.UUIDField(null=True)),
                ("written_at", models.DateTimeField()),
                ("replaced_at", models.DateTimeField()),
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
                    models.UniqueConstraint(fields=("instance", "memory_id", "number"), name="version_number_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Milestone",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id", "id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("id", models.UUIDField(default=memoryconsole.ids.uuid7, editable=False)),
                ("series", models.CharField(max_length=32)),
                ("ordinal", models.PositiveIntegerField()),
                ("importance", models.SmallIntegerField()),
                ("memory_id", models.UUIDField()),
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
                    models.Index(models.F("instance"), models.F("series"), models.F("ordinal"), name="milestone_place")
                ],
            },
        ),
        migrations.CreateModel(
            name="Procedure",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id", "id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("id", models.UUIDField(default=memoryconsole.ids.uuid7, editable=False)),
                ("name", models.CharField(max_length=200)),
                ("trigger", models.TextField(blank=True, default="")),
                ("steps", django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                ("usage_count", models.PositiveIntegerField(default=0)),
                ("last_used_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
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
                        models.F("instance"), models.F("usage_count"), models.F("id"), name="procedure_most_used"
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("instance", "name"), name="procedure_name_once")],
            },
        ),
        migrations.CreateModel(
            name="Recall",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id", "id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("id", models.UUIDField(default=memoryconsole.ids.uuid7, editable=False)),
                ("conversation_id", models.UUIDField(null=True)),
                ("owner", models.CharField(blank=True, default="", max_length=200)),
                ("query", models.TextField()),
                ("search_mode", models.CharField(max_length=16)),
                ("tokens", models.PositiveIntegerField(default=0)),
                (
                    "memory_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, size=None),
                ),
                ("explanation", models.JSONField(default=dict)),
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
                "indexes": [
                    models.Index(
                        models.F("instance"),
                        models.F("conversation_id"),
                        condition=models.Q(("conversation_id__isnull", False)),
                        name="recall_of_conversation",
                    ),
                    django.contrib.postgres.indexes.GinIndex(
                        models.F("instance"), models.F("memory_ids"), name="recall_of_memory"
                    ),
                ],
            },
        ),
    ]
