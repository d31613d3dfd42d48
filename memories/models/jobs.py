"""Background jobs, as people see them."""

from django.db import models
from django.db.models import Q

from memoryconsole.tenancy import InstanceOwned


class Job(InstanceOwned):
    """A background job, with its progress and its result."""

    class State(models.TextChoices):
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    UNFINISHED = (State.QUEUED, State.RUNNING)

    kind = models.CharField(max_length=40)
    state = models.CharField(max_length=16, choices=State.choices, default=State.QUEUED)
    actor = models.CharField(max_length=200)
    conversation_id = models.UUIDField(null=True)
    payload = models.JSONField(default=dict)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0)
    tokens = models.PositiveIntegerField(default=0)
    result = models.JSONField(default=dict)
    error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index("instance", "state", "id", name="job_by_state"),
            models.Index(
                "instance",
                "conversation_id",
                "id",
                condition=Q(conversation_id__isnull=False),
                name="job_of_conversation",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"
