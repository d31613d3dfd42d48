"""The log of recalls, and golden queries."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q

from memoryconsole.tenancy import InstanceOwned


class Recall(InstanceOwned):
    """A recall: what was asked, what was recalled and why. Kept as long as the instance keeps its log."""

    conversation_id = models.UUIDField(null=True)
    owner = models.CharField(max_length=200, blank=True, default="")
    query = models.TextField()
    search_mode = models.CharField(max_length=16)
    tokens = models.PositiveIntegerField(default=0)
    memory_ids = ArrayField(models.UUIDField(), default=list)
    explanation = models.JSONField(default=dict)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(
                "instance", "conversation_id", condition=Q(conversation_id__isnull=False), name="recall_of_conversation"
            ),
            GinIndex(F("instance"), F("memory_ids"), name="recall_of_memory"),
        ]

    def __str__(self) -> str:
        return f"recall {self.id}"


class RecallUse(InstanceOwned):
    """Memories that a recall put into a prompt. A job adds them to the access counts and deletes the row."""

    memory_ids = ArrayField(models.UUIDField())
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{len(self.memory_ids)} memories used"


class GoldenQuery(InstanceOwned):
    """A question for which it is known what recall should find and what not."""

    query = models.TextField()
    owner = models.CharField(max_length=200, blank=True, default="")
    query_hash = models.BinaryField(max_length=32)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["instance", "query_hash"], name="golden_query_once")]

    def __str__(self) -> str:
        return self.query[:60]


class GoldenMark(InstanceOwned):
    """A memory that a golden query should find, or should not find."""

    golden_id = models.UUIDField()
    memory_id = models.UUIDField()
    expected = models.BooleanField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["instance", "golden_id", "memory_id"], name="golden_mark_once")]
        indexes = [models.Index("instance", "memory_id", name="golden_mark_of_memory")]

    def __str__(self) -> str:
        return f"{'+' if self.expected else '-'}{self.memory_id}"
