"""Counters of memories, and milestones of long lists."""

from django.db import models

from memoryconsole.tenancy import InstanceOwned


class MemoryCount(InstanceOwned):
    """Changes to the number of listed memories, appended by a trigger and summed up by a job. Their sum is the count.

    Rows are only appended, so writers never wait for each other as they would for one counter row.
    """

    category = models.CharField(max_length=16)
    private = models.BooleanField()
    delta = models.BigIntegerField()

    class Meta:
        indexes = [models.Index("instance", "category", "private", include=["delta"], name="memory_count_sum")]

    def __str__(self) -> str:
        return f"{self.category} {self.delta:+}"


class Milestone(InstanceOwned):
    """Every thousandth row of a long list, counted from the oldest, so that a page far inside is found at once."""

    series = models.CharField(max_length=32)
    ordinal = models.PositiveIntegerField()
    importance = models.SmallIntegerField()
    memory_id = models.UUIDField()

    class Meta:
        indexes = [models.Index("instance", "series", "ordinal", name="milestone_place")]

    def __str__(self) -> str:
        return f"{self.series} {self.ordinal}"
