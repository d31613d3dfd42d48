"""Memories, their versions and their attachments."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import ExpressionWrapper, F, Q

from memories.vocabulary import Category, EmbeddingState, Review, Role, Status, Visibility
from memoryconsole.tenancy import InstanceOwned

MAX_CONTENT = 32_000
MAX_SUMMARY = 2_000
MAX_TAGS = 32
MAX_TAG = 64

SHARED = [Visibility.TEAM, Visibility.ORG]

# A bare boolean column, so that prepared statements with generic plans can still use the partial indexes.
LISTED = Q(listed=True)


def _one_of(field: str, choices: type[models.TextChoices]) -> models.CheckConstraint:
    return models.CheckConstraint(
        condition=Q(**{f"{field}__in": choices.values}),
        name=f"memory_{field}_known",
        violation_error_message=f"Choose one of: {', '.join(choices.values)}.",
    )


class Memory(InstanceOwned):
    """One thing remembered. Its id never changes; earlier texts are stored as versions."""

    key = models.CharField(max_length=200, blank=True, default="")
    content = models.TextField()
    summary = models.TextField(blank=True, default="")
    category = models.CharField(max_length=16, choices=Category.choices, default=Category.GENERAL)
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.CONTEXT)
    importance = models.SmallIntegerField(default=5)
    confidence = models.FloatField(default=1.0)
    tags = ArrayField(models.CharField(max_length=MAX_TAG), default=list, blank=True)
    pinned = models.BooleanField(default=False)
    visibility = models.CharField(max_length=16, choices=Visibility.choices, default=Visibility.INSTANCE)
    owner = models.CharField(max_length=200, blank=True, default="")

    source = models.CharField(max_length=32, default="manual")
    source_conversation_id = models.UUIDField(null=True)
    conversation_position = models.PositiveIntegerField(default=0)
    source_message_ids = ArrayField(models.UUIDField(), default=list, blank=True)
    occurred_at = models.DateTimeField(null=True)
    channel = models.CharField(max_length=64, blank=True, default="")
    expires_at = models.DateTimeField(null=True)
    evidence = models.JSONField(default=dict, blank=True)

    status = models.CharField(max_length=16, choices=Status.choices, default=Status.ACTIVE)
    superseded_by_id = models.UUIDField(null=True)
    supersede_reason = models.TextField(blank=True, default="")
    review = models.CharField(max_length=16, choices=Review.choices, default=Review.APPROVED)
    conflicts_with_id = models.UUIDField(null=True)
    listed = models.GeneratedField(
        expression=ExpressionWrapper(Q(status=Status.ACTIVE, review=Review.APPROVED), models.BooleanField()),
        output_field=models.BooleanField(),
        db_persist=True,
    )

    embedding = models.CharField(max_length=16, choices=EmbeddingState.choices, default=EmbeddingState.PENDING)
    embedding_error = models.TextField(blank=True, default="")
    content_hash = models.BinaryField(max_length=32)

    access_count = models.PositiveIntegerField(default=0)
    last_accessed_at = models.DateTimeField(null=True)
    last_seen_at = models.DateTimeField()
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(importance__range=(1, 10)),
                name="memory_importance_1_to_10",
                violation_error_message="Importance is a whole number from 1 to 10.",
            ),
            models.CheckConstraint(
                condition=Q(confidence__range=(0, 1)),
                name="memory_confidence_0_to_1",
                violation_error_message="Confidence is a number from 0 to 1.",
            ),
            models.CheckConstraint(
                condition=~Q(content=""),
                name="memory_content_not_empty",
                violation_error_message="Content may not be empty.",
            ),
            _one_of("category", Category),
            _one_of("role", Role),
            _one_of("visibility", Visibility),
            _one_of("status", Status),
            _one_of("review", Review),
            _one_of("embedding", EmbeddingState),
            models.UniqueConstraint(
                fields=["instance", "owner", "key"],
                condition=Q(status=Status.ACTIVE) & ~Q(key=""),
                name="memory_active_key_once",
            ),
        ]
        # "Newest first" is the primary key; these serve the filters, each led by the instance.
        indexes = [
            models.Index("instance", "category", "id", condition=LISTED, name="memory_by_category"),
            models.Index("instance", "importance", "id", condition=LISTED, name="memory_by_importance"),
            models.Index("instance", "role", "id", condition=LISTED, name="memory_by_role"),
            models.Index("instance", "id", condition=Q(pinned=True), name="memory_pinned"),
            models.Index("instance", "owner", "id", condition=~Q(owner=""), name="memory_by_owner"),
            models.Index("instance", "id", condition=Q(visibility=Visibility.PRIVATE), name="memory_private"),
            models.Index("instance", "id", condition=Q(visibility__in=SHARED), name="memory_shared"),
            models.Index("instance", "id", condition=~Q(embedding=EmbeddingState.READY), name="memory_not_embedded"),
            models.Index("instance", "id", condition=~LISTED, name="memory_unlisted"),
            models.Index("instance", "id", condition=Q(review=Review.PENDING), name="memory_to_review"),
            models.Index("instance", "access_count", "id", condition=Q(access_count__gt=0), name="memory_recalled"),
            models.Index("instance", "expires_at", condition=Q(expires_at__isnull=False), name="memory_expiring"),
            models.Index("instance", "occurred_at", condition=Q(occurred_at__isnull=False), name="memory_occurred"),
            models.Index(
                "instance",
                "source_conversation_id",
                "conversation_position",
                condition=Q(source_conversation_id__isnull=False),
                name="memory_of_conversation",
            ),
            models.Index("instance", "content_hash", name="memory_same_content"),
            # For the foreign keys that point here: PostgreSQL looks these up whenever a memory is deleted.
            models.Index(
                "instance",
                "superseded_by_id",
                condition=Q(superseded_by_id__isnull=False),
                name="memory_superseded_by",
            ),
            models.Index(
                "instance",
                "conflicts_with_id",
                condition=Q(conflicts_with_id__isnull=False),
                name="memory_conflicts_with",
            ),
            GinIndex(F("instance"), F("tags"), condition=~Q(tags=[]), name="memory_tagged"),
        ]

    def __str__(self) -> str:
        return self.content[:60]


class MemoryVersion(InstanceOwned):
    """What a memory said before a change, why it changed and who changed it."""

    memory_id = models.UUIDField()
    number = models.PositiveIntegerField()
    key = models.CharField(max_length=200, blank=True, default="")
    content = models.TextField()
    summary = models.TextField(blank=True, default="")
    category = models.CharField(max_length=16)
    role = models.CharField(max_length=16)
    importance = models.SmallIntegerField()
    # Null in versions that are older than these columns.
    confidence = models.FloatField(null=True)
    evidence = models.JSONField(null=True)
    tags = ArrayField(models.CharField(max_length=MAX_TAG), default=list, blank=True)
    reason = models.TextField(blank=True, default="")
    actor = models.CharField(max_length=200)
    similarity = models.FloatField(null=True)
    source_message_id = models.UUIDField(null=True)
    written_at = models.DateTimeField()
    replaced_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["instance", "memory_id", "number"], name="version_number_once")]

    def __str__(self) -> str:
        return f"{self.memory_id} v{self.number}"


class Attachment(InstanceOwned):
    """A file kept with a memory."""

    memory_id = models.UUIDField()
    name = models.CharField(max_length=255)
    content_type = models.CharField(max_length=127)
    size = models.PositiveBigIntegerField()
    sha256 = models.BinaryField(max_length=32)
    path = models.CharField(max_length=255)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index("instance", "memory_id", name="attachment_of_memory")]

    def __str__(self) -> str:
        return self.name
