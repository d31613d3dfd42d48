"""Expiry of memories. Nobody can read an expired memory; a job deletes it soon after."""

from collections.abc import Collection

from django.db.models import Q
from django.db.models.functions import Now

from accounts.access import Scope
from memories.models import Memory

# `expires_at__isnull=False` repeats the condition of the partial index.
IS_EXPIRED = Q(expires_at__isnull=False, expires_at__lte=Now())


def release_keys(scope: Scope, keys: Collection[str]) -> None:
    """Take these keys from memories that have expired but are not purged yet."""
    wanted = {key for key in keys if key}
    if wanted:
        Memory.objects.filter(IS_EXPIRED, instance=scope.instance, key__in=wanted).update(key="")
