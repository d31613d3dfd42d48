"""Creating, changing and deleting instances."""

import unicodedata
from dataclasses import asdict
from hashlib import sha256
from typing import Annotated, Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.utils.text import slugify
from pydantic import ConfigDict, StringConstraints, field_validator
from pydantic.alias_generators import to_camel

from accounts.access import Actor, Scope, require_superadmin
from accounts.events import INSTANCE_DELETED, record_event
from instances.listing import contents_of
from instances.models import Embedder, Instance, Organisation, Team, bounds_of
from memories.deletion import files_of, remove_files
from memories.embedding.backfill import embed_anew
from memories.indexing import use_language_soon
from memoryconsole.errors import Invalid, NotAllowed, NotFound, Taken
from memoryconsole.inputs import Fraction, Input, Number, Perhaps, Text, never_null, not_null, snake_name

Label = Annotated[Text, StringConstraints(min_length=1, max_length=100)]
Key = Annotated[Text, StringConstraints(max_length=500)]
LONGEST_SLUG = 64
SHORTEST_KEY = 12
NOT_A_KEY = "This does not look like an API key."


def _with_bounds(schema: dict[str, Any]) -> None:
    """Add the columns' limits to the schema: numbers are checked by the columns, not by this model."""
    for name, field in schema["properties"].items():
        for choice in field.get("anyOf", ()):
            if choice.get("type") in ("integer", "number"):
                choice["minimum"], choice["maximum"] = bounds_of(snake_name(name))


class InstanceSettings(Input):
    """The settings of an instance."""

    model_config = ConfigDict(json_schema_extra=_with_bounds)

    name: Label | None = None
    team: Label | None = None
    organisation: Label | None = None
    memory_enabled: bool | None = None
    language: Annotated[Text, StringConstraints(min_length=1, max_length=63)] | None = None
    embedder: Embedder | None = None
    openai_key: Annotated[Key | None, Perhaps] = None
    extraction_messages: Number | None = None
    extraction_limit: Number | None = None
    dedupe_threshold: Fraction | None = None
    auto_approve_importance: Number | None = None
    quiet_minutes: Number | None = None
    recall_limit: Number | None = None
    recall_threshold: Fraction | None = None
    recall_token_budget: Number | None = None
    recall_half_life_days: Number | None = None
    recall_mmr_lambda: Fraction | None = None
    recall_injected_cap: Number | None = None
    recall_log_days: Number | None = None


# These can be changed but not removed.
NEVER_NULL = InstanceSettings.model_fields.keys() - {"openai_key"}


def _as_changes(schema: dict[str, Any]) -> None:
    _with_bounds(schema)
    never_null(*map(to_camel, NEVER_NULL))(schema)


class InstanceChanges(InstanceSettings):
    """Settings to change; what is left out stays. Null or an empty `openaiKey` removes the key."""

    model_config = ConfigDict(json_schema_extra=_as_changes)

    _not_null = field_validator(*NEVER_NULL, mode="before")(not_null)


class InstanceDraft(InstanceSettings):
    slug: Annotated[Text, StringConstraints(min_length=1, max_length=64)]


def create_instance(actor: Actor, draft: InstanceDraft, *, is_demo: bool = False) -> Instance:
    require_instance_admin(actor)
    instance = Instance(slug=draft.slug, name=draft.name or draft.slug, is_demo=is_demo)
    try:
        with transaction.atomic():
            instance.team = team_named(draft.team or "default", draft.organisation or "default")
            _apply(instance, draft)
            instance.save(force_insert=True)
            record_event(actor, "instance created", instance.slug)
    except IntegrityError:
        raise Taken({"slug": ["An instance with this slug exists already."]}) from None
    return instance


def change_instance(scope: Scope, changes: InstanceChanges) -> Instance:
    scope.require_write()
    instance = scope.instance
    language = instance.language
    with transaction.atomic():
        is_moved = changes.team is not None or changes.organisation is not None
        if is_moved:
            require_instance_admin(scope.actor)
            organisation = changes.organisation or instance.team.organisation.name
            instance.team = team_named(changes.team or instance.team.name, organisation)
        changed = _apply(instance, changes)
        # Only these columns, because the worker changes others of the same row.
        instance.save(update_fields=[*changed, *(["team"] if is_moved else []), "updated_at"])
        if changed & {"embedder", "openai_key"}:
            embed_anew(scope)
        if instance.language != language:
            use_language_soon(scope)
        record_event(scope.actor, "instance changed", instance.slug, fields=sorted(changes.model_fields_set))
    return instance


def delete_instance(scope: Scope) -> dict[str, int]:
    """Delete the instance with everything in it, and return the counts of what was deleted."""
    require_superadmin(scope.actor)
    instance = scope.instance
    with transaction.atomic():
        # Waits for whoever is writing into it; whoever comes later finds it gone.
        if not Instance.objects.select_for_update().filter(pk=instance.pk).exists():
            raise NotFound
        counts = asdict(contents_of(scope))
        paths = files_of(scope)
        transaction.on_commit(lambda: remove_files(paths))
        with connection.cursor() as cursor:
            # Memories first: a trigger counts their deletion, in a table that is deleted with the instance.
            cursor.execute("DELETE FROM memories_memory WHERE instance_id = %s", [instance.id])
        Instance.objects.filter(pk=instance.pk).delete()
        record_event(scope.actor, INSTANCE_DELETED, instance.slug, id=str(instance.id), **counts)
    return counts


def require_instance_admin(actor: Actor) -> None:
    """Only superadmins and keys for all instances may create instances and move them between teams."""
    if actor.read_only or not actor.all_instances:
        raise NotAllowed("Only a superadmin or a key for all instances may do this.")


def team_named(team: str, organisation: str) -> Team:
    """The team, created with its organisation if they do not exist."""
    owner, _ = Organisation.objects.get_or_create(slug=_slug(organisation), defaults={"name": organisation})
    found, _ = Team.objects.get_or_create(organisation=owner, slug=_slug(team), defaults={"name": team})
    return found


def _slug(name: str) -> str:
    """The same slug for names that differ only in case, accents or punctuation.

    A slug that would lose letters of another script, or be too long, ends with a hash, so that different names have
    different slugs.
    """
    slug, folded = slugify(name).strip("-_"), unicodedata.normalize("NFKD", name)
    is_complete = slug and len(slug) <= LONGEST_SLUG and not any(c.isalnum() and not c.isascii() for c in folded)
    digest = sha256(folded.casefold().encode()).hexdigest()[:16]
    return slug if is_complete else f"{slug[: LONGEST_SLUG - 17]}-{digest}".lstrip("-")


def languages() -> list[str]:
    """The text-search configurations this database has."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT cfgname FROM pg_ts_config ORDER BY cfgname = 'simple', cfgname")
        return [name for (name,) in cursor.fetchall()]


def _apply(instance: Instance, changes: InstanceSettings) -> set[str]:
    """Set the changes on the object, and return the names of the columns to save."""
    given = changes.model_fields_set - {"slug", "team", "organisation"}
    changed = {name for name in given if getattr(changes, name) is not None}
    for name in changed:
        setattr(instance, name, getattr(changes, name))
    if "openai_key" in changed:
        instance.openai_key_last4 = instance.openai_key[-4:] if len(instance.openai_key) >= SHORTEST_KEY else ""
        changed.add("openai_key_last4")
    _check(instance, changes)
    return changed


def _check(instance: Instance, changes: InstanceSettings) -> None:
    errors: dict[str, list[str]] = {}
    try:
        instance.clean_fields(exclude=["team"])
    except ValidationError as error:
        errors = {to_camel(name): reasons for name, reasons in error.message_dict.items()}
    if changes.language is not None and instance.language not in languages():
        errors["language"] = [f"Choose one of: {', '.join(languages())}."]
    if changes.openai_key and not looks_like_key(changes.openai_key):
        errors["openaiKey"] = [NOT_A_KEY]
    if errors:
        raise Invalid(errors)


def looks_like_key(key: str) -> bool:
    return len(key) >= SHORTEST_KEY and key.isascii() and key.isprintable() and " " not in key
