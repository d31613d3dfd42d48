"""The list of instances, and how much is in each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Aggregate, Count, Q, QuerySet, Sum
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
    """How many memories the actor may list in each instance, by its id.

    The counters include expired memories until they are purged, so those are subtracted. They count private memories
    apart, so for anybody but a superadmin only their own are added.
    """
    counters = MemoryCount.objects.filter(instance__in=instances)
    expired = Memory.objects.filter(LISTED, IS_EXPIRED, instance__in=instances)
    own: dict[UUID, int] = {}
    if not actor.is_superadmin:
        counters = counters.filter(private=False)
        expired = expired.filter(~Q(visibility=Visibility.PRIVATE) | Q(owner=actor.name))
        private = Memory.objects.filter(LISTED, IS_PRIVATE, instance__in=instances, owner=actor.name)
        own = _per_instance(private, Count("id"))
    counted, gone = _per_instance(counters, Sum("delta")), _per_instance(expired, Count("id"))
    return {id: counted.get(id, 0) + own.get(id, 0) - gone.get(id, 0) for id in counted.keys() | own.keys()}


def _per_instance(rows: QuerySet[Any], total: Aggregate) -> dict[UUID, int]:
    return dict(rows.order_by().values_list("instance_id").annotate(total))


@dataclass(frozen=True, slots=True)
class Contents:
    memories: int
    conversations: int


def contents_of(scope: Scope) -> Contents:
    """What is deleted with the instance, including what no list shows."""
    return Contents(
        Memory.objects.filter(instance=scope.instance).count(),
        Conversation.objects.filter(instance=scope.instance).count(),
    )


def demo_instances() -> list[Instance]:
    return list(Instance.objects.filter(is_demo=True).order_by("slug"))


def free_slug(name: str) -> str:
    """An unused slug made from the name; empty if no character of the name can be in a slug."""
    base = slugify(name)[:60].strip("-_").replace("_", "-")
    if not base:
        return ""
    taken = set(Instance.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    return next((slug for slug in (base, *(f"{base}-{n}" for n in range(2, 1000))) if slug not in taken), "")
