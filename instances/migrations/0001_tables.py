import django.core.validators
import django.db.models.deletion
import memoryconsole.encryption
import memoryconsole.ids
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Organisation",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memoryconsole.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "slug",
                    models.CharField(
                        max_length=64,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$",
                                "Use 1 to 64 lower-case letters, digits and hyphens, starting and ending with a letter or digit.",
                            )
                        ],
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name="Team",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memoryconsole.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "slug",
                    models.CharField(
                        max_length=64,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$",
                                "Use 1 to 64 lower-case letters, digits and hyphens, starting and ending with a letter or digit.",
                            )
                        ],
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "organisation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="teams", to="instances.organisation"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Instance",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memoryconsole.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "slug",
                    models.CharField(
                        error_messages={"unique": "An instance with this slug exists already."},
                        max_length=64,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$",
                                "Use 1 to 64 lower-case letters, digits and hyphens, starting and ending with a letter or digit.",
                            )
                        ],
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("is_demo", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("memory_enabled", models.BooleanField(default=True)),
                ("language", models.CharField(default="english", max_length=63)),
                (
                    "embedder",
                    models.CharField(
                        choices=[
                            ("openai", "OpenAI"),
                            ("azure", "Azure OpenAI"),
                            ("offline", "Offline (no key needed)"),
                        ],
                        default="openai",
                        max_length=16,
                    ),
                ),
                ("embedding_model", models.CharField(blank=True, default="", max_length=100)),
                ("embedding_generation", models.SmallIntegerField(default=1)),
                ("indexed_generation", models.SmallIntegerField(default=0)),
                ("openai_key", memoryconsole.encryption.EncryptedTextField(blank=True, default="")),
                ("openai_key_last4", models.CharField(blank=True, default="", max_length=4)),
                (
                    "extraction_messages",
                    models.PositiveSmallIntegerField(
                        default=15,
                        validators=[
                            django.core.validators.MinValueValidator(1, "Choose a value from 1 to 100."),
                            django.core.validators.MaxValueValidator(100, "Choose a value from 1 to 100."),
                        ],
                    ),
                ),
                (
                    "extraction_limit",
                    models.PositiveSmallIntegerField(
                        default=20,
                        validators=[
                            django.core.validators.MinValueValidator(1, "Choose a value from 1 to 50."),
                            django.core.validators.MaxValueValidator(50, "Choose a value from 1 to 50."),
                        ],
                    ),
                ),
                (
                    "dedupe_threshold",
                    models.FloatField(
                        default=0.9,
                        validators=[
                            django.core.validators.MinValueValidator(0.5, "Choose a value from 0.5 to 1."),
                            django.core.validators.MaxValueValidator(1, "Choose a value from 0.5 to 1."),
                        ],
                    ),
                ),
                (
                    "auto_approve_importance",
                    models.PositiveSmallIntegerField(
                        default=1,
                        validators=[
                            django.core.validators.MinValueValidator(1, "Choose a value from 1 to 11."),
                            django.core.validators.MaxValueValidator(11, "Choose a value from 1 to 11."),
                        ],
                    ),
                ),
                (
                    "quiet_minutes",
                    models.PositiveIntegerField(
                        default=30,
                        validators=[
                            django.core.validators.MinValueValidator(1, "Choose a value from 1 to 10080."),
                            django.core.validators.MaxValueValidator(10080, "Choose a value from 1 to 10080."),
                        ],
                    ),
                ),
                (
                    "recall_limit",
                    models.PositiveSmallIntegerField(
                        default=8,
                        validators=[
                            django.core.validators.MinValueValidator(1, "Choose a value from 1 to 50."),
                            django.core.validators.MaxValueValidator(50, "Choose a value from 1 to 50."),
                        ],
                    ),
                ),
                (
                    "recall_threshold",
                    models.FloatField(
                        default=0.3,
                        validators=[
                            django.core.validators.MinValueValidator(0, "Choose a value from 0 to 1."),
                            django.core.validators.MaxValueValidator(1, "Choose a value from 0 to 1."),
                        ],
                    ),
                ),
                (
                    "recall_token_budget",
                    models.PositiveIntegerField(
                        default=2000,
                        validators=[
                            django.core.validators.MinValueValidator(100, "Choose a value from 100 to 32000."),
                            django.core.validators.MaxValueValidator(32000, "Choose a value from 100 to 32000."),
                        ],
                    ),
                ),
                (
                    "recall_half_life_days",
                    models.PositiveIntegerField(
                        default=30,
                        validators=[
                            django.core.validators.MinValueValidator(1, "Choose a value from 1 to 3650."),
                            django.core.validators.MaxValueValidator(3650, "Choose a value from 1 to 3650."),
                        ],
                    ),
                ),
                (
                    "recall_mmr_lambda",
                    models.FloatField(
                        default=0.7,
                        validators=[
                            django.core.validators.MinValueValidator(0, "Choose a value from 0 to 1."),
                            django.core.validators.MaxValueValidator(1, "Choose a value from 0 to 1."),
                        ],
                    ),
                ),
                (
                    "recall_injected_cap",
                    models.PositiveSmallIntegerField(
                        default=50,
                        validators=[
                            django.core.validators.MinValueValidator(0, "Choose a value from 0 to 200."),
                            django.core.validators.MaxValueValidator(200, "Choose a value from 0 to 200."),
                        ],
                    ),
                ),
                (
                    "recall_log_days",
                    models.PositiveSmallIntegerField(
                        default=30,
                        validators=[
                            django.core.validators.MinValueValidator(0, "Choose a value from 0 to 365."),
                            django.core.validators.MaxValueValidator(365, "Choose a value from 0 to 365."),
                        ],
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="instances", to="instances.team"
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="team",
            constraint=models.UniqueConstraint(fields=("organisation", "slug"), name="team_slug_once"),
        ),
        migrations.AddConstraint(
            model_name="instance",
            constraint=models.CheckConstraint(
                condition=models.Q(("embedder__in", ["openai", "azure", "offline"])),
                name="instance_embedder_known",
                violation_error_message="Choose openai, azure or offline.",
            ),
        ),
    ]
