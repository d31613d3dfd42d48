"""Procedures: named, ordered steps an assistant has learnt, and when to follow them."""

from datetime import datetime
from typing import Annotated, Any

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from pydantic import ConfigDict, Field, StringConstraints, field_validator

from accounts.access import Scope
from memories import audit
from memories.embedding.backfill import embed_soon
from memories.models import Procedure, ProcedureVector
from memories.paging import Order
from memoryconsole.errors import Conflict, Invalid, Taken
from memoryconsole.finding import find_among
from memoryconsole.inputs import Input, Perhaps, Text, at_most, never_null, not_null
from memoryconsole.scrub import scrub

MAX_NAME = 200
MAX_TRIGGER = 2_000
MAX_STEP = 2_000
MAX_STEPS = 50
# All of them are compared with every question.
MAX_PROCEDURES = 1_000
MOST_USED = Order(("usage_count", "id"))
NAME_TAKEN = "procedure_name_once"
NO_PROCEDURE = "There is no such procedure in this instance."
CHANGED_MEANWHILE = (
    "Somebody changed this procedure while you were writing. Compare with what it says now, then save again."
)

Name = Annotated[Text, StringConstraints(min_length=1, max_length=MAX_NAME), at_most(MAX_NAME)]
Trigger = Annotated[Text, StringConstraints(max_length=MAX_TRIGGER)]
Steps = Annotated[
    list[Annotated[Text, StringConstraints(min_length=1, max_length=MAX_STEP)]],
    Field(min_length=1, max_length=MAX_STEPS),
]


class ProcedureDraft(Input):
    """A new procedure: what to do, step by step, and in `trigger` when to do it."""

    name: Name
    trigger: Annotated[Trigger, Perhaps] = ""
    steps: Steps


class ProcedureChanges(Input):
    """What to change; what is left out stays as it is. `steps` replaces all of them, null takes the `trigger` away."""

    model_config = ConfigDict(json_schema_extra=never_null("name", "steps"))

    name: Name | None = None
    trigger: Annotated[Trigger | None, Perhaps] = None
    steps: Steps | None = None

    _not_null = field_validator("name", "steps", mode="before")(not_null)


def procedures_of(scope: Scope) -> QuerySet[Procedure]:
    return Procedure.objects.filter(instance=scope.instance).defer("words")


def most_used(scope: Scope) -> QuerySet[Procedure]:
    return MOST_USED.sorted(procedures_of(scope))


def find_procedure(scope: Scope, raw_id: object) -> Procedure:
    """The only way from an outside id to a procedure."""
    return find_among(procedures_of(scope), raw_id, NO_PROCEDURE)


def create_procedure(scope: Scope, draft: ProcedureDraft) -> Procedure:
    scope.require_write()
    if procedures_of(scope).count() >= MAX_PROCEDURES:
        raise Invalid({"name": [f"An instance has at most {MAX_PROCEDURES:,} procedures. Delete one first."]})
    now = timezone.now()
    language = scope.instance.language
    fields = _scrubbed(draft.model_dump())
    procedure = Procedure(instance=scope.instance, language=language, created_at=now, updated_at=now, **fields)
    try:
        with transaction.atomic():
            procedure.save(force_insert=True)
            embed_soon(scope)
            audit.record(scope, "procedure created", procedureId=str(procedure.id))
    except IntegrityError as error:
        _check_name(error)
        raise
    return procedure


def change_procedure(
    scope: Scope, raw_id: object, changes: ProcedureChanges, *, seen: datetime | None = None
) -> Procedure:
    """Change a procedure. `seen` is the `updated_at` its writer saw: if it has changed since, this raises."""
    scope.require_write()
    fields = _scrubbed({name: value for name, value in changes.model_dump().items() if value is not None})
    try:
        with transaction.atomic():
            procedure = find_among(procedures_of(scope).select_for_update(), raw_id, NO_PROCEDURE)
            if seen is not None and procedure.updated_at != seen:
                raise Conflict(CHANGED_MEANWHILE, code="changed_meanwhile")
            _apply(scope, procedure, fields)
    except IntegrityError as error:
        _check_name(error)
        raise
    return procedure


def _apply(scope: Scope, procedure: Procedure, fields: dict[str, Any]) -> None:
    differing = {name: value for name, value in fields.items() if getattr(procedure, name) != value}
    if not differing:
        return
    for name, value in {**differing, "updated_at": timezone.now()}.items():
        setattr(procedure, name, value)
    procedure.save(update_fields=[*differing, "updated_at"])
    if differing.keys() & {"name", "trigger"}:
        ProcedureVector.objects.filter(instance=scope.instance, procedure_id=procedure.id).delete()
        embed_soon(scope)
    audit.record(scope, "procedure changed", procedureId=str(procedure.id), fields=sorted(differing))


@transaction.atomic
def delete_procedure(scope: Scope, raw_id: object) -> None:
    scope.require_write()
    procedure = find_procedure(scope, raw_id)
    Procedure.objects.filter(pk=procedure.pk).delete()
    audit.record(scope, "procedure deleted", procedureId=str(procedure.id))


def count_use(scope: Scope, raw_id: object) -> Procedure:
    """Count that the assistant has followed it once more."""
    scope.require_write()
    procedure = find_procedure(scope, raw_id)
    Procedure.objects.filter(pk=procedure.pk).update(usage_count=F("usage_count") + 1, last_used_at=Now())
    return find_procedure(scope, raw_id)


def use_language(scope: Scope) -> None:
    """Index names and triggers again, in the instance's current language."""
    Procedure.objects.filter(instance=scope.instance).update(language=scope.instance.language)


def _scrubbed(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: [scrub(step)[0] for step in value] if name == "steps" else scrub(value)[0]
        for name, value in fields.items()
    }


def _check_name(error: IntegrityError) -> None:
    if NAME_TAKEN in str(error):
        raise Taken({"name": ["Another procedure of this instance has this name."]}) from None
