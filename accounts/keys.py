"""API keys: made once, shown once, stored as a hash."""

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Literal
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.access import Actor, actor_of_key, instances_of
from accounts.events import record_event
from accounts.models import ApiKey
from instances.models import Instance
from memoryconsole.connections import dispensable
from memoryconsole.errors import Conflict, Invalid, NotAllowed, NotFound
from memoryconsole.ids import parse_id, uuid7
from memoryconsole.reading import Composed
from memoryconsole.turns import wait_for_turn

USED_AGAIN_AFTER = timedelta(minutes=1)
LONGEST_NAME = 100
BY_PREFIX = Composed(lambda prefix: ApiKey.objects.filter(prefix=prefix), str)


@dataclass(frozen=True, slots=True)
class Grants:
    all_instances: bool = False
    read_only: bool = False
    read_team: bool = False
    read_org: bool = False


@transaction.atomic
def create_key(
    actor: Actor,
    *,
    name: str,
    instances: Sequence[Instance],
    grants: Grants,
    expires_at: datetime | None = None,
    id: UUID | None = None,
) -> tuple[ApiKey, str]:
    """The key's row and the key itself, which cannot be read again. With an `id`, repeating the call is an error."""
    if id:
        wait_for_turn(f"api key {id}")
        if ApiKey.objects.filter(id=id).exists():
            raise Conflict("This key has been made already, and was shown once.", code="made_already")
    name = name.strip()
    if not 1 <= len(name) <= LONGEST_NAME:
        raise Invalid({"name": [f"Give it a name of 1 to {LONGEST_NAME} characters."]})
    if not grants.all_instances and not instances:
        raise Invalid({"instances": ["Choose at least one instance."]})
    if grants.all_instances and instances:
        raise Invalid({"instances": ["Choose all instances or only these, not both."]})
    if not actor.is_superadmin and (grants.all_instances or grants.read_team or grants.read_org):
        raise NotAllowed("Only a superadmin may make keys that reach beyond single instances.")
    if expires_at and expires_at <= timezone.now():
        raise Invalid({"expiresAt": ["Choose a time in the future."]})
    prefix, secret = secrets.token_hex(4), secrets.token_urlsafe(32).replace("_", "-")
    whole = f"mc_{prefix}_{secret}"
    key = ApiKey.objects.create(
        id=id or uuid7(),
        name=name,
        prefix=prefix,
        hash=_hash(whole),
        **asdict(grants),
        expires_at=expires_at,
        created_by_id=actor.id if actor.kind == "user" else None,
    )
    key.instances.set([] if grants.all_instances else instances)
    record_event(actor, "key created", name, prefix=prefix, instances=[instance.slug for instance in instances])
    return key, whole


def key_presented(whole: str) -> ApiKey | None:
    """The row of an active key, or None for anything else."""
    parts = whole.split("_", 2)
    if len(parts) != 3 or parts[0] != "mc" or "\x00" in whole:
        return None
    key = BY_PREFIX.first(parts[1])
    if key is None or not hmac.compare_digest(key.hash, _hash(whole)) or state_of(key) != "active":
        return None
    now = timezone.now()
    if key.last_used_at is None or now - key.last_used_at > USED_AGAIN_AFTER:
        with dispensable("The use of a key"):
            ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)
    return key


def actor_presenting(header: str) -> Actor | None:
    """Whose Authorization header this is; None unless it has an active key."""
    scheme, _, credentials = header.partition(" ")
    key = key_presented(credentials.strip()) if scheme.lower() == "bearer" and credentials.isascii() else None
    return actor_of_key(key) if key else None


def keys_seen_by(actor: Actor) -> list[ApiKey]:
    """All keys for a superadmin; for others those they made and those whose every instance is theirs."""
    return _seen(actor, ApiKey.objects.select_related("created_by").order_by("-id"))


def find_key(actor: Actor, raw_id: object) -> ApiKey:
    id = parse_id(raw_id)
    found = _seen(actor, ApiKey.objects.filter(id=id)) if id else []
    if not found:
        raise NotFound("There is no such key.")
    return found[0]


def state_of(key: ApiKey) -> Literal["active", "expired", "revoked"]:
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires_at and key.expires_at <= timezone.now() else "active"


@transaction.atomic
def revoke_key(actor: Actor, raw_id: object) -> ApiKey:
    key = find_key(actor, raw_id)
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        record_event(actor, "key revoked", key.name, prefix=key.prefix)
    return key


def _seen(actor: Actor, rows: QuerySet[ApiKey]) -> list[ApiKey]:
    keys = rows.prefetch_related("instances")
    if actor.is_superadmin:
        return list(keys)
    own = set(instances_of(actor).values_list("id", flat=True))
    return [key for key in keys.filter(all_instances=False) if key.created_by_id == actor.id or _within(key, own)]


def _within(key: ApiKey, own: set[UUID]) -> bool:
    reached = {instance.id for instance in key.instances.all()}
    return bool(reached) and reached <= own


def _hash(whole: str) -> str:
    return sha256(whole.encode(errors="replace")).hexdigest()
