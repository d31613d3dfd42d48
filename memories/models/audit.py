"""The audit log."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F

from memoryconsole.tenancy import InstanceOwned


class AuditEntry(InstanceOwned):
    """Who did what to which memories, and when. Ids, names and counts only; never what a memory said."""

    action = models.CharField(max_length=40)
    actor = models.CharField(max_length=200)
    memory_ids = ArrayField(models.UUIDField(), default=list)
    detail = models.JSONField(default=dict)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index("instance", "actor", "id", name="audit_by_actor"),
            models.Index("instance", "action", "id", name="audit_by_action"),
            GinIndex(F("instance"), F("memory_ids"), name="audit_of_memory"),
        ]

    def __str__(self) -> str:
        return f"{self.actor}: {self.action}"
