import django.contrib.auth.validators
import django.db.models.deletion
import memoryconsole.ids
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("instances", "0001_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="AccountEvent",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memoryconsole.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("action", models.CharField(max_length=40)),
                ("actor", models.CharField(max_length=200)),
                ("subject", models.CharField(max_length=200)),
                ("detail", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name="User",
            fields=[
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                (
                    "id",
                    models.UUIDField(
                        default=memoryconsole.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        error_messages={"unique": "A user with this name exists already."},
                        max_length=150,
                        unique=True,
                        validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                    ),
                ),
                ("is_superadmin", models.BooleanField(default=False, verbose_name="superadmin")),
                ("is_active", models.BooleanField(default=True, verbose_name="may sign in")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "last_instance",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
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
            name="ApiKey",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memoryconsole.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("prefix", models.CharField(max_length=12, unique=True)),
                ("hash", models.CharField(max_length=64)),
                ("all_instances", models.BooleanField(default=False)),
                ("read_only", models.BooleanField(default=False)),
                ("read_team", models.BooleanField(default=False)),
                ("read_org", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("last_used_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("instances", models.ManyToManyField(related_name="+", to="instances.instance")),
            ],
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memoryconsole.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("read_team", models.BooleanField(default=False)),
                ("read_org", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "instance",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="memberships", to="instances.instance"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("user", "instance"), name="membership_once")],
            },
        ),
    ]
