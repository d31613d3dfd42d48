"""Instances: one per assistant. An instance is the isolation boundary; its slug is the public `instanceId`."""

from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models

from memoryconsole.encryption import EncryptedTextField
from memoryconsole.ids import uuid7

SLUG = RegexValidator(
    r"^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$",
    "Use 1 to 64 lower-case letters, digits and hyphens, starting and ending with a letter or digit.",
)


class Embedder(models.TextChoices):
    OPENAI = "openai", "OpenAI"
    AZURE = "azure", "Azure OpenAI"
    OFFLINE = "offline", "Offline (no key needed)"


class Organisation(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.CharField(max_length=64, unique=True, validators=[SLUG])
    name = models.CharField(max_length=100)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Team(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organisation = models.ForeignKey(Organisation, models.PROTECT, related_name="teams")
    slug = models.CharField(max_length=64, validators=[SLUG])
    name = models.CharField(max_length=100)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organisation", "slug"], name="team_slug_once")]

    def __str__(self) -> str:
        return self.name


def _between(low: float, high: float) -> list[MinValueValidator | MaxValueValidator]:
    message = f"Choose a value from {low:g} to {high:g}."
    return [MinValueValidator(low, message), MaxValueValidator(high, message)]


class Instance(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    team = models.ForeignKey(Team, models.PROTECT, related_name="instances")
    slug = models.CharField(
        max_length=64,
        unique=True,
        validators=[SLUG],
        error_messages={"unique": "An instance with this slug exists already."},
    )
    name = models.CharField(max_length=100)
    is_demo = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    memory_enabled = models.BooleanField(default=True)
    language = models.CharField(max_length=63, default="english")
    embedder = models.CharField(max_length=16, choices=Embedder.choices, default=Embedder.OPENAI)
    # The model and the generation of the vectors that search uses now.
    embedding_model = models.CharField(max_length=100, blank=True, default="")
    embedding_generation = models.SmallIntegerField(default=1)
    # The vector index of this instance, if it is large: of which generation (0 for no index), up to which chunk, and of
    # how many dimensions. The depth is how many candidates a search asks it for, 0 if it finds too few to be used.
    indexed_generation = models.SmallIntegerField(default=0)
    indexed_up_to = models.UUIDField(null=True, blank=True)
    indexed_dimensions = models.PositiveSmallIntegerField(default=0)
    indexed_depth = models.PositiveSmallIntegerField(default=0)
    openai_key = EncryptedTextField(blank=True, default="")
    openai_key_last4 = models.CharField(max_length=4, blank=True, default="")

    extraction_messages = models.PositiveSmallIntegerField(default=15, validators=_between(1, 100))
    extraction_limit = models.PositiveSmallIntegerField(default=20, validators=_between(1, 50))
    dedupe_threshold = models.FloatField(default=0.90, validators=_between(0.5, 1))
    auto_approve_importance = models.PositiveSmallIntegerField(default=1, validators=_between(1, 11))
    quiet_minutes = models.PositiveIntegerField(default=30, validators=_between(1, 10_080))

    recall_limit = models.PositiveSmallIntegerField(default=8, validators=_between(1, 50))
    recall_threshold = models.FloatField(default=0.3, validators=_between(0, 1))
    recall_token_budget = models.PositiveIntegerField(default=2000, validators=_between(100, 32_000))
    recall_half_life_days = models.PositiveIntegerField(default=30, validators=_between(1, 3650))
    recall_mmr_lambda = models.FloatField(default=0.7, validators=_between(0, 1))
    recall_injected_cap = models.PositiveSmallIntegerField(default=50, validators=_between(0, 200))
    recall_log_days = models.PositiveSmallIntegerField(default=30, validators=_between(0, 365))

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(embedder__in=Embedder.values),
                name="instance_embedder_known",
                violation_error_message="Choose openai, azure or offline.",
            )
        ]

    def __str__(self) -> str:
        return self.slug

    @property
    def has_unreadable_key(self) -> bool:
        """Whether the key was encrypted with an encryption key that this server does not have."""
        return bool(self.openai_key_last4) and not self.openai_key


def bounds_of(setting: str) -> tuple[float, float]:
    """The smallest and the largest value of a setting."""
    column: Any = Instance._meta.get_field(setting)
    low = next(v.limit_value for v in column.validators if isinstance(v, MinValueValidator))
    high = next(v.limit_value for v in column.validators if isinstance(v, MaxValueValidator))
    return low, high
