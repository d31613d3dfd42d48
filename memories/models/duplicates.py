"""Pairs of similar memories."""

from django.db import models
from django.db.models import F, Q

from memoryconsole.tenancy import InstanceOwned


class DuplicatePair(InstanceOwned):
    """Two memories that say nearly the same, the older one first; found by a job; a person decides what to do."""

    class Kind(models.TextChoices):
        DUPLICATE = "duplicate", "Duplicate"
        CONFLICT = "conflict", "Possible conflict"

    class State(models.TextChoices):
        OPEN = "open", "Open"
        DISMISSED = "dismissed", "Both are kept"

    first_id = models.UUIDField()
    second_id = models.UUIDField()
    cosine = models.FloatField()
    kind = models.CharField(max_length=16, choices=Kind.choices)
    state = models.CharField(max_length=16, choices=State.choices, default=State.OPEN)
    found_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["instance", "first_id", "second_id"], name="pair_once"),
            models.CheckConstraint(condition=Q(first_id__lt=F("second_id")), name="pair_older_first"),
        ]
        indexes = [
            models.Index("instance", "second_id", name="pair_of_second"),
            models.Index("instance", "cosine", "id", condition=Q(state="open"), name="pair_open"),
        ]

    def __str__(self) -> str:
        return f"{self.first_id} {self.second_id} {self.cosine:.3f}"
