"""Writing memories: save, change, restore. Each function is one transaction that does everything or raises.

Nothing is overwritten without a trace: a change of the text leaves a version with reason and actor.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.access import Scope
from memories import audit, expiry, indexing, links, versions
from memories.draft import MemoryChanges, MemoryDraft
from memories.embedding.backfill import embed_soon
from memories.filters import may_read, readable, unexpired
from memories.inserting import insert_many, insert_one, new_rows
from memories.models import Memory
from memories.versions import Cause
from memories.vocabulary import EmbeddingState, Status, Visibility
from memoryconsole.errors import Conflict, Invalid, NotFound, Taken
from memoryconsole.finding import find_among
from memoryconsole.ids import uuid7, uuid7_at
from memoryconsole.reading import columns_of, filled, rows_found
from memoryconsole.scrub import scrub, scrub_all
from memoryconsole.turns import wait_for_turn

SCRUBBED = ("content", "summary", "tags", "evidence", "supersede_reason")
KEY_TAKEN = "memory_active_key_once"
CHANGED_MEANWHILE = "Somebody changed this memory while you were writing. Saving again replaces what it says now."


class KeysTaken(Taken):
    """Keys of a list of memories, by their place in it."""

    code = "key_taken"


@dataclass(frozen=True, slots=True)
class Saved:
    memory: Memory
    event: Literal["created", "updated"]
    redacted: Sequence[str] = ()


def find_memory(scope: Scope, raw_id: object) -> Memory:
    """The only way from an outside id to a memory."""
    memory = find_among(readable(scope), raw_id, "There is no such memory in this instance.")
    audit.note_private_reads(scope, [memory])
    return memory


def save(scope: Scope, draft: MemoryDraft) -> Saved:
    """Store a new memory. If its key is taken, `dedupe` decides what happens."""
    scope.require_write()
    links.check(scope, [draft])
    memory, redacted = build(scope, draft)
    for attempt in (1, 2, 3):
        try:
            with transaction.atomic():
                return _save(scope, draft, memory, redacted)
        except IntegrityError as error:
            links.check(scope, [draft])
            # Somebody saved the same key after we looked for it. The next attempt finds that memory.
            if KEY_TAKEN not in str(error) or attempt == 3:
                raise
    raise AssertionError("unreachable")


def _save(scope: Scope, draft: MemoryDraft, memory: Memory, redacted: list[str]) -> Saved:
    holder = _holder_of_key(scope, memory) if memory.key else None
    if holder is None:
        insert(scope, [memory])
        return Saved(memory, "created", redacted)
    if not may_read(scope, holder):
        raise Conflict(f"The key “{memory.key}” is taken.", code="key_taken")
    if draft.dedupe == "reject" and not draft.supersede_reason:
        raise Conflict(
            f"The key “{memory.key}” is taken. Send supersedeReason to say why the current memory is out of date.",
            code="key_taken",
            extra={"memory": holder},
        )
    scrubbed, redacted_in_reason = scrub(draft.supersede_reason)
    reason, redacted = scrubbed or "saved again under the same key", [*redacted, *redacted_in_reason]
    if draft.dedupe == "create":
        _supersede(scope, holder, memory, reason)
        return Saved(memory, "created", redacted)
    sent = draft.model_fields_set - {"dedupe", "supersede_reason", "source", "key", "owner"}
    fields = {name: getattr(memory, name) for name in sent}
    apply(scope, holder, fields, Cause(reason))
    return Saved(holder, "updated", redacted)


def _supersede(scope: Scope, old: Memory, new: Memory, reason: str) -> None:
    Memory.objects.filter(pk=old.pk).update(status=Status.SUPERSEDED, supersede_reason=reason)
    indexing.hide(scope, old)
    insert(scope, [new])
    Memory.objects.filter(pk=old.pk).update(superseded_by_id=new.id)
    audit.record(scope, "superseded", [old.id])


def insert(scope: Scope, memories: Sequence[Memory]) -> None:
    """Insert memories with their chunks and an audit entry, inside the caller's transaction."""
    indexing.place_in_conversations(scope, memories)
    write = insert_one if len(memories) == 1 else insert_many
    write(
        new_rows(Memory, memories),
        indexing.new_chunks(scope, memories),
        audit.entry(scope, "created", [memory.id for memory in memories]),
    )
    if any(memory.embedding == EmbeddingState.PENDING for memory in memories):
        embed_soon(scope)


def save_many(
    scope: Scope, drafts: Sequence[MemoryDraft], *, written_at: Sequence[datetime] | None = None
) -> list[Saved]:
    """Store all of them or none. `written_at` is when each one was first remembered, if that was before now."""
    scope.require_write()
    links.check(scope, drafts, in_list=True)
    moments = written_at if written_at is not None else [None] * len(drafts)
    built = [build(scope, draft, moment) for draft, moment in zip(drafts, moments, strict=True)]
    try:
        with transaction.atomic():
            # Always in the same order: two requests with the same keys would deadlock otherwise.
            in_order = sorted((memory for memory, _ in built), key=lambda memory: (memory.owner, memory.key))
            expiry.release_keys(scope, [memory.key for memory in in_order])
            insert(scope, in_order)
    except IntegrityError as error:
        links.check(scope, drafts, in_list=True)
        if KEY_TAKEN not in str(error):
            raise
        if taken := _keys_taken(scope, [memory for memory, _ in built]):
            raise KeysTaken(taken) from None
        raise Conflict("A key in this list was taken a moment ago. Nothing was saved.", code="key_taken") from None
    return [Saved(memory, "created", redacted) for memory, redacted in built]


def _keys_taken(scope: Scope, memories: Sequence[Memory]) -> dict[str, list[str]]:
    """Why each of these was refused that was, by its place. Empty if whoever had the key has just given it up."""
    rows = Memory.objects.filter(instance=scope.instance, status=Status.ACTIVE, key__in={each.key for each in memories})
    held = set(unexpired(rows.exclude(key="")).values_list("owner", "key"))
    errors: dict[str, list[str]] = {}
    before: set[tuple[str, str]] = set()
    for place, memory in enumerate(memories):
        name = (memory.owner, memory.key)
        if name in held:
            errors[f"memories.{place}.key"] = ["Another memory has this key."]
        elif memory.key and name in before:
            errors[f"memories.{place}.key"] = ["This key is in the list twice."]
        before.add(name)
    return errors


def change(scope: Scope, raw_id: object, changes: MemoryChanges, *, seen: datetime | None = None) -> Memory:
    """Correct a memory. `seen` is the `updated_at` its writer saw: if it has changed since, this raises."""
    scope.require_write()
    fields = changes.changed_fields()
    links.check_fields(scope, fields)
    scrub_fields(fields)
    try:
        with transaction.atomic():
            memory = _locked_one(scope, raw_id)
            if seen is not None and memory.updated_at != seen:
                raise Conflict(CHANGED_MEANWHILE, code="changed_meanwhile")
            if not fields.keys().isdisjoint({"key", "owner"}):
                expiry.release_keys(scope, [fields.get("key", memory.key)])
            apply(scope, memory, fields, Cause(scrub(changes.supersede_reason)[0]))
    except IntegrityError as error:
        links.check_fields(scope, fields)
        if KEY_TAKEN not in str(error):
            raise
        raise Conflict("Another memory has this key.", code="key_taken") from None
    return memory


def restore(scope: Scope, raw_id: object, number: int | None = None) -> Memory:
    """Bring back the text of version `number`; the current text becomes a version itself.

    A superseded memory becomes active again, without its key if another memory has that key now. Without a number it
    keeps its current text.
    """
    scope.require_write()
    with transaction.atomic():
        memory = _locked_one(scope, raw_id)
        if memory.status == Status.SUPERSEDED:
            _use_again(scope, memory)
        elif number is None:
            raise Invalid({"version": ["This memory is in use: say which version to bring back."]})
        if number is not None:
            _restore_version(scope, memory, number)
    return memory


def _use_again(scope: Scope, memory: Memory) -> None:
    expiry.release_keys(scope, [memory.key])
    fields: dict[str, Any] = {
        "status": Status.ACTIVE,
        "superseded_by_id": None,
        "supersede_reason": "",
        "updated_at": timezone.now(),
        "embedding": memory.embedding if indexing.has_all_vectors(scope, memory) else EmbeddingState.PENDING,
    }
    if not _update_unless_key_taken(memory, fields):
        fields["key"] = ""
        _update_unless_key_taken(memory, fields)
    for name, value in fields.items():
        setattr(memory, name, value)
    indexing.show(scope, memory)
    indexing.index_changed(scope, memory, fields, None)
    if memory.embedding == EmbeddingState.PENDING:
        embed_soon(scope)
    audit.record(scope, "used_again", [memory.id], **({"fields": ["key"]} if "key" in fields else {}))


def _update_unless_key_taken(memory: Memory, fields: dict[str, Any]) -> bool:
    """Return False if another memory has the key."""
    try:
        with transaction.atomic():
            Memory.objects.filter(pk=memory.pk).update(**fields)
    except IntegrityError as error:
        if KEY_TAKEN not in str(error):
            raise
        return False
    return True


def _restore_version(scope: Scope, memory: Memory, number: int) -> None:
    version = versions.find(scope, memory, number)
    known = {name: getattr(version, name) for name in versions.RESTORED}
    fields = {name: value for name, value in known.items() if value is not None}
    if apply(scope, memory, fields, Cause(f"restored version {number}"), is_restored=True):
        audit.record(scope, "restored", [memory.id], version=number)


def apply(scope: Scope, memory: Memory, fields: dict[str, Any], cause: Cause, *, is_restored: bool = False) -> bool:
    """Write the fields that differ and keep the old text as a version. Return False if nothing differs.

    The caller's transaction must hold a lock on the memory's row. A restored version may be told by its tags alone, and
    the caller writes the audit log.
    """
    fields = _with_summary(memory, fields)
    differing = {name: value for name, value in fields.items() if getattr(memory, name) != value}
    if not differing:
        return False
    names = sorted(differing)
    versioned = versions.RESTORED if is_restored else versions.VERSIONED
    version = versions.keep(scope, memory, differing, cause, versioned=versioned)
    differing["updated_at"] = timezone.now()
    if "content" in differing:
        differing["content_hash"] = content_hash(differing["content"])
    if not indexing.EMBEDDED.isdisjoint(differing):
        differing["embedding"] = EmbeddingState.PENDING
    for name, value in differing.items():
        setattr(memory, name, value)
    if memory.visibility == Visibility.PRIVATE and not memory.owner:
        raise Invalid({"owner": ["A private memory needs an owner."]})
    Memory.objects.filter(pk=memory.pk).update(**differing)
    indexing.index_changed(scope, memory, differing, version)
    if "embedding" in differing:
        embed_soon(scope)
    if not is_restored:
        audit.record(scope, "changed", [memory.id], fields=names)
    return True


def _with_summary(memory: Memory, fields: dict[str, Any]) -> dict[str, Any]:
    """Clear the summary if the content changes and no new summary is sent: recall may use it in place of the text."""
    content_changes = fields.get("content", memory.content) != memory.content
    return {"summary": ""} | fields if memory.summary and content_changes else fields


def build(scope: Scope, draft: MemoryDraft, written_at: datetime | None = None) -> tuple[Memory, list[str]]:
    """The unsaved memory for a draft, and the kinds of credentials that were replaced in it."""
    now = written_at or timezone.now()
    fields = {name: getattr(draft, name) for name in DRAFT_COLUMNS}
    redacted = scrub_fields(fields)
    fields |= {
        "instance_id": scope.instance.id,
        "id": uuid7_at(written_at) if written_at else uuid7(),
        "source": draft.source or ("manual" if scope.actor.kind == "user" else "api"),
        "content_hash": content_hash(fields["content"]),
        "created_at": now,
        "updated_at": now,
        "last_seen_at": now,
    }
    return new_memory(fields), redacted


def new_memory(fields: dict[str, Any]) -> Memory:
    """An unsaved memory: these fields, and defaults for all other columns."""
    return filled(Memory, _DEFAULTS | fields)


# Shared by all new memories. Mutable defaults (tags, evidence) do no harm here: every draft sets them.
_DEFAULTS: dict[str, Any] = {
    column.attname: column.get_default() for column in Memory._meta.concrete_fields if not column.generated
}
DRAFT_COLUMNS = tuple(name for name in MemoryDraft.model_fields if name not in {"dedupe", "supersede_reason", "source"})


def content_hash(content: str) -> bytes:
    return sha256(content.encode()).digest()


def credentials_in(changes: MemoryChanges) -> list[str]:
    """The kinds of credentials that `change` will not store."""
    return scrub_fields({**changes.changed_fields(), "supersede_reason": changes.supersede_reason})


def scrub_fields(fields: dict[str, Any]) -> list[str]:
    """Replace the credentials in these fields, in place, and return their kinds."""
    redacted: list[str] = []
    for name in SCRUBBED:
        if fields.get(name):
            fields[name], found = scrub_all(fields[name])
            redacted += found
    return redacted


# Repeats the condition of the partial index as literals, because a generic plan cannot match it with parameters.
KEY_HOLDER = f"""
SELECT {columns_of(Memory, "m")} FROM memories_memory m
WHERE instance_id = %s AND owner = %s AND key = %s AND status = 'active' AND NOT key = '' FOR UPDATE
"""


def _holder_of_key(scope: Scope, memory: Memory) -> Memory | None:
    # A row lock is not enough: while the holder is being superseded, there is no row of its successor to lock yet.
    wait_for_turn(f"key {scope.instance.id} {memory.owner} {memory.key}")
    wanted = (scope.instance.id, memory.owner, memory.key)
    found = rows_found(Memory, KEY_HOLDER, wanted)
    if found and found[0].expires_at:
        expiry.release_keys(scope, [memory.key])
        found = rows_found(Memory, KEY_HOLDER, wanted)
    return found[0] if found else None


def _locked_one(scope: Scope, raw_id: object) -> Memory:
    memory = locked(scope, [find_memory(scope, raw_id).id]).first()
    if memory is None:
        raise NotFound("This memory has just been deleted.")
    return memory


def locked(scope: Scope, ids: Sequence[UUID]) -> QuerySet[Memory]:
    """Lock these rows in the order of their ids, as everybody does who locks several, so that nobody deadlocks."""
    return readable(scope).filter(id__in=ids).order_by("id").select_for_update()
