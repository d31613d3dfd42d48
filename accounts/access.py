"""The one door from an outside id to an instance.

Pages, API, commands and tools all know who is asking (an `Actor`) and which instance they named; only `open_instance`
turns that into a `Scope`, and everything that reads or writes memories starts from a scope. An instance that is
absent, malformed or not the actor's is the same `NotFound`.
"""

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal
from uuid import UUID

from django.db.models import QuerySet

from accounts.models import ApiKey, Membership, User
from instances.models import SLUG, Instance
from memoryconsole.errors import InstanceRequired, NotAllowed, NotFound
from memoryconsole.reading import Composed

Kind = Literal["user", "key", "shell", "job"]


@dataclass(frozen=True, slots=True)
class Actor:
    """Who is asking: a person in the console, a program with a key, whoever has a shell on the server, or a job."""

    kind: Kind
    name: str
    id: UUID | None = None
    is_superadmin: bool = False
    all_instances: bool = False
    read_only: bool = False
    read_team: bool = False
    read_org: bool = False

    def __str__(self) -> str:
        """As logs and jobs keep it, whose columns take no more."""
        return f"{self.kind} {self.name}"[:200]

    @property
    def is_authenticated(self) -> bool:
        return True


SHELL = Actor(kind="shell", name="server", is_superadmin=True, all_instances=True)


def actor_of_user(user: User) -> Actor:
    return Actor(
        kind="user",
        name=user.username,
        id=user.id,
        is_superadmin=user.is_superadmin,
        all_instances=user.is_superadmin,
    )


def actor_of_key(key: ApiKey) -> Actor:
    return Actor(
        kind="key",
        name=key.name,
        id=key.id,
        all_instances=key.all_instances,
        read_only=key.read_only,
        read_team=key.read_team,
        read_org=key.read_org,
    )


@dataclass(frozen=True, slots=True)
class Scope:
    """One instance opened by one actor. With a `reader`, the actor asks on behalf of that end user."""

    instance: Instance
    actor: Actor
    reads_team: bool = False
    reads_org: bool = False
    """Whether search also shows what other instances of the team or the organisation share."""
    reader: str | None = None

    @property
    def private_memories_of(self) -> str | None:
        """The owner whose private memories may be read: None means all owners, "" none."""
        own = self.actor.name if self.actor.kind == "user" and not self.actor.is_superadmin else None
        if self.reader is None or self.reader == own:
            return own
        return self.reader if own is None else ""

    def reading_for(self, end_user: str) -> "Scope":
        """The same scope, but with private memories of this end user only; of nobody if the name is empty."""
        return replace(self, reader=end_user)

    def require_write(self) -> None:
        if self.actor.read_only:
            raise NotAllowed("This key may only read.", code="read_only")


def instances_of(actor: Actor) -> QuerySet[Instance]:
    if actor.all_instances:
        return Instance.objects.all()
    if actor.id is None:
        return Instance.objects.none()
    if actor.kind == "user":
        return Instance.objects.filter(memberships__user_id=actor.id)
    reached = ApiKey.instances.through.objects.filter(apikey_id=actor.id)
    return Instance.objects.filter(pk__in=reached.values("instance_id"))


def open_instance(actor: Actor, slug: str | None) -> Scope:
    if not slug:
        raise InstanceRequired
    if not re.fullmatch(SLUG.regex, slug):
        raise NotFound
    instance = _query(actor.kind, actor.all_instances, actor.id is not None).first(slug, actor.id)
    if instance is None:
        raise NotFound
    return Scope(instance, actor, *_reach(actor, instance))


@cache
def _query(kind: Kind, all_instances: bool, has_id: bool) -> Composed[Instance]:
    """`instances_of` for this kind of actor, composed once."""

    def named(slug: str, id: UUID) -> QuerySet[Instance]:
        actor = Actor(kind=kind, name="", id=id if has_id else None, all_instances=all_instances)
        return instances_of(actor).filter(slug=slug)

    return Composed(named, str, UUID)


def _reach(actor: Actor, instance: Instance) -> tuple[bool, bool]:
    """Whether the actor may read what the team shares and what the organisation shares."""
    if actor.is_superadmin or actor.kind != "user" or actor.id is None:
        return actor.read_team or actor.is_superadmin, actor.read_org or actor.is_superadmin
    granted = Membership.objects.filter(user_id=actor.id, instance=instance).values_list("read_team", "read_org")
    return granted.first() or (False, False)


def open_only_instance(actor: Actor) -> Scope:
    """The instance of a key that was made for exactly one, so that it need not and cannot be named."""
    reached = [] if actor.all_instances else list(instances_of(actor)[:2])
    if len(reached) != 1:
        raise NotAllowed(
            "This key does not say which instance is meant: it must be made for exactly one. "
            "Make such a key on the API keys page or with: manage.py createapikey --instance SLUG",
            code="one_instance_needed",
        )
    return Scope(reached[0], actor, *_reach(actor, reached[0]))


def require_superadmin(actor: Actor) -> None:
    """For managing users, instances, and keys that reach all instances."""
    if not actor.is_superadmin:
        raise NotAllowed("Only a superadmin may do this.")
