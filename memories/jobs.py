"""Work the worker does on memories, on a schedule. Jobs are the only ones who look at more than one instance."""

from django.db import connection
from django.db.models import Sum
from django.db.models.functions import Now
from procrastinate.contrib.django import app

from accounts.access import Actor, Scope
from instances.models import Instance
from memories.deletion import purge_expired
from memories.milestones import MARKED, WORTH_MARKING, mark
from memories.models import Memory, MemoryCount, Milestone

PURGER = Actor(kind="job", name="purge", all_instances=True)
MARKER = Actor(kind="job", name="milestones", all_instances=True)

FOLD = """
WITH folded AS (
    DELETE FROM memories_memorycount RETURNING instance_id, category, private, delta
)
INSERT INTO memories_memorycount (instance_id, id, category, private, delta)
SELECT instance_id, gen_random_uuid(), category, private, sum(delta)
FROM folded
GROUP BY instance_id, category, private
HAVING sum(delta) <> 0
"""


@app.periodic(cron="* * * * *")
@app.task(name="fold_counts", queueing_lock="fold_counts")
def fold_counts(timestamp: int) -> None:
    """Sum up the appended changes, so that reading a count stays a matter of a few rows."""
    with connection.cursor() as cursor:
        cursor.execute(FOLD)


@app.periodic(cron="*/5 * * * *")
@app.task(name="purge_expired", queueing_lock="purge_expired")
def purge_all_expired(timestamp: int) -> None:
    """Remove what has expired; nobody has been able to read it since that moment."""
    due = Memory.objects.filter(expires_at__isnull=False, expires_at__lte=Now()).values("instance_id").distinct()
    for instance in Instance.objects.filter(id__in=due):
        purge_expired(Scope(instance, PURGER))


@app.periodic(cron="*/5 * * * *")
@app.task(name="mark_milestones", queueing_lock="mark_milestones")
def mark_milestones(timestamp: int) -> None:
    """Mark the long lists whose length has changed since they were marked."""
    lengths = MemoryCount.objects.values_list("instance_id").annotate(n=Sum("delta")).filter(n__gte=WORTH_MARKING)
    marked = dict(Milestone.objects.filter(series=MARKED).values_list("instance_id", "ordinal"))
    for instance_id, length in lengths:
        if marked.get(instance_id) != length:
            mark(Scope(Instance.objects.get(id=instance_id), MARKER), length)
