"""Rebuilding a logged recall as the assistant saw it: the log has the ids, memories and versions have the texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from accounts.access import Scope
from instances.models import Instance
from memories.audit import note_private_reads
from memories.filters import Filters, readable
from memories.models import Memory, MemoryVersion, Procedure
from memories.recall.account import Account, GivenLine
from memories.recall.arrangement import name_of, procedure_entry
from memories.recall.prompt_block import Entry, Placed, date_of, line_for, render
from memories.search.sharing import origins, shared_with

# A memory, and the instance that shares it if it belongs to another one.
MemoryAndOrigin = tuple[Memory | None, Instance | None]
NOT_FOUND: MemoryAndOrigin = (None, None)


@dataclass(frozen=True, slots=True)
class Shown:
    """A memory of a past block; None if it was deleted since or the reader may not see it. Without a text, what it said
    then cannot be shown."""

    line: GivenLine
    memory: Memory | None
    has_changed: bool
    text: str
    origin: Instance | None = None
    """The instance that shares the memory, if it belongs to another one."""


@dataclass(frozen=True, slots=True)
class Replay:
    context: str
    memories: list[Shown]
    is_complete: bool
    """Everything that was in the block can still be shown."""


def replay(scope: Scope, account: Account) -> Replay:
    ids = [line.memory_id for line in account.given]
    own = {memory.id: memory for memory in readable(scope).filter(id__in=ids)} if ids else {}
    note_private_reads(scope, own.values())
    shared = shared_among(scope, [id for id in ids if id not in own])
    memories: dict[UUID, MemoryAndOrigin] = {**{id: (memory, None) for id, memory in own.items()}, **shared}
    versions = _versions_at([memory for memory, _ in memories.values() if memory], account.at)
    shown = [
        _shown(line, *memories.get(line.memory_id, NOT_FOUND), versions.get(line.memory_id)) for line in account.given
    ]
    lines = {one.line.memory_id: Placed(one.text, one.line.form) for one in shown if one.text}
    procedures = _procedures(scope, account)
    is_complete = len(lines) == len(shown) and len(procedures) == len(account.procedures) and not account.has_summary
    return Replay(render(lines | procedures).text, shown, is_complete)


def shared_among(scope: Scope, ids: Sequence[UUID]) -> dict[UUID, tuple[Memory, Instance]]:
    """Those of these memories that another instance shares with this one, with that instance."""
    sources = origins(scope) if ids else {}
    rows = shared_with(scope, sources.values(), Filters()).filter(id__in=ids) if sources else []
    return {memory.id: (memory, sources[memory.instance_id]) for memory in rows}


def _procedures(scope: Scope, account: Account) -> dict[UUID, Placed]:
    """The procedures that have not changed since; procedures have no versions."""
    rows = Procedure.objects.filter(instance=scope.instance, id__in=account.procedures, updated_at__lte=account.at)
    entries = {row.id: procedure_entry(row) for row in rows} if account.procedures else {}
    in_order = [entries[id] for id in account.procedures if id in entries]
    return {entry.id: Placed(line_for(entry, entry.wordings[0].text), "content") for entry in in_order}


def _versions_at(memories: Sequence[Memory], moment: datetime) -> Mapping[UUID, MemoryVersion]:
    """For each memory that has changed since the moment: the version that was current then."""
    if not memories:
        return {}
    wanted = Q(*(Q(instance=each.instance_id, memory_id=each.id) for each in memories), _connector=Q.OR)
    rows = MemoryVersion.objects.filter(wanted, replaced_at__gt=moment).order_by("-number")
    return {version.memory_id: version for version in rows}


def _shown(line: GivenLine, memory: Memory | None, origin: Instance | None, version: MemoryVersion | None) -> Shown:
    if memory is None:
        return Shown(line, None, False, "")
    if origin and version:
        # What a shared memory said earlier is part of its history, which other instances do not see.
        return Shown(line, memory, True, "", origin)
    at_that_time = version or memory
    name = name_of(memory.id, at_that_time.key, origin)
    entry = Entry(memory.id, at_that_time.role.upper(), name, [], date=date_of(memory.occurred_at))
    return Shown(line, memory, version is not None, line_for(entry, _wording(line, at_that_time)), origin)


def _wording(line: GivenLine, text: Memory | MemoryVersion) -> str:
    if line.form == "excerpt" and line.passage:
        start, end = line.passage
        return f"… {text.content[start:end]} …"
    return text.summary if line.form == "summary" and text.summary else text.content
