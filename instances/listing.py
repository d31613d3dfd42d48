"""The instances somebody may open, and what is in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Q, Sum
from django.utils.text import slugify

from accounts.access import Actor, Scope, instances_of
from conversations.models import Conversation
from instances.models import Instance
from instances.warnings import Warning, warnings_for
from memories.expiry import IS_EXPIRED
from memories.filters import IS_PRIVATE
from memories.models import LISTED, Memory, MemoryCount
from memories.vocabulary import Visibility


@dataclass(frozen=True, slots=True)
class InstanceRow:
    instance: Instance
    memories: int
    warnings: list[Warning]


def list_instances(actor: Actor) -> list[InstanceRow]:
    instances = list(instances_of(actor).select_related("team__organisation").order_by("slug"))
    counts = _memories_in(actor, instances)
    return [InstanceRow(each, counts.get(each.id, 0), warnings_for(each)) for each in instances]


def _memories_in(actor: Actor, instances: Sequence[Instance]) -> dict[UUID, int]:
    """From the counters; private memories of others are not counted for those who may not read them.

    What has expired is in the counters until it is purged.
    """
    sums = MemoryCount.objects.filter(instance__in=instances)
    gone = Memory.objects.filter(LISTED, IS_EXPIRED, instance__in=instances)
    if not actor.is_superadmin:
        sums = sums.filter(private=False)
        gone = gone.filter(~Q(visibility=Visibility.PRIVATE) | Q(owner=actor.name))
    expired = dict(gone.order_by().values_list("instance_id").annotate(Count("id")))
    counts = dict(sums.order_by().values_list("instance_id").annotate(Sum("delta")))
    if not actor.is_superadmin:
        own = Memory.objects.filter(LISTED, IS_PRIVATE, instance__in=instances, owner=actor.name)
        for id, n in own.order_by().values_list("instance_id").annotate(Count("id")):
            counts[id] = counts.get(id, 0) + n
    return {id: n - expired.get(id, 0) for id, n in counts.items()}


@dataclass(frozen=True, slots=True)
class Contents:
    memories: int
    conversations: int


def contents_of(scope: Scope) -> Contents:
    """What goes when the instance goes, also what no list shows."""
    return Contents(
        Memory.objects.filter(instance=scope.instance).count(),
        Conversation.objects.filter(instance=scope.instance).count(),
    )


def demo_instances() -> list[Instance]:
    return list(Instance.objects.filter(is_demo=True).order_by("slug"))


def free_slug(name: str) -> str:
    """A slug made from the name that no instance has yet; empty when nothing in the name can be in a slug."""
    base = slugify(name)[:60].strip("-_").replace("_", "-")
    if not base:
        return ""
    taken = set(Instance.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    return next((slug for slug in (base, *(f"{base}-{n}" for n in range(2, 1000))) if slug not in taken), "")
