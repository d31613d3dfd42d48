"""When a memory is to be forgotten by itself. From that moment nobody can read it; a job removes it soon after."""

from collections.abc import Collection

from django.db.models import Q
from django.db.models.functions import Now

from accounts.access import Scope
from memories.models import Memory

# With the condition of the index of what expires.
IS_EXPIRED = Q(expires_at__isnull=False, expires_at__lte=Now())


def release_keys(scope: Scope, keys: Collection[str]) -> None:
    """What has expired and is not purged yet does not hold its key any more."""
    wanted = {key for key in keys if key}
    if wanted:
        Memory.objects.filter(IS_EXPIRED, instance=scope.instance, key__in=wanted).update(key="")
