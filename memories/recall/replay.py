"""A recall from the log as the assistant saw it: the log knows which memories, their versions know what they said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from accounts.access import Scope
from instances.models import Instance
from memories.audit import note_private_reads
from memories.filters import Filters, readable
from memories.models import Memory, MemoryVersion, Procedure
from memories.recall.account import Account, GivenLine
from memories.recall.arrangement import name_of, procedure_entry
from memories.recall.prompt_block import Entry, Placed, line_for, rendered
from memories.search.sharing import origins, shared_with

Said = Memory | MemoryVersion
Known = tuple[Memory | None, Instance | None]
GONE: Known = (None, None)


@dataclass(frozen=True, slots=True)
class Shown:
    """A memory of a past block. It may have been deleted since, or be private: then there is nothing to show."""

    line: GivenLine
    memory: Memory | None
    has_changed: bool
    text: str
    origin: Instance | None = None
    """The instance that shares it, when it is not this one's own."""


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
    memories: dict[UUID, Known] = {**{id: (memory, None) for id, memory in own.items()}, **shared}
    earlier = _as_they_were(scope, list(own), account.at)
    shown = [_shown(line, *memories.get(line.memory_id, GONE), earlier.get(line.memory_id)) for line in account.given]
    lines = {one.line.memory_id: Placed(one.text, one.line.form) for one in shown if one.memory}
    procedures = _procedures(scope, account)
    is_complete = len(lines) == len(shown) and len(procedures) == len(account.procedures) and not account.has_summary
    return Replay(rendered(lines | procedures).text, shown, is_complete)


def shared_among(scope: Scope, ids: Sequence[UUID]) -> dict[UUID, tuple[Memory, Instance]]:
    """Those of them that another instance shares with this one, and which."""
    sources = origins(scope) if ids else {}
    rows = shared_with(scope, sources.values(), Filters()).filter(id__in=ids) if sources else []
    return {memory.id: (memory, sources[memory.instance_id]) for memory in rows}


def _procedures(scope: Scope, account: Account) -> dict[UUID, Placed]:
    """Those that are still as they were then; they have no versions."""
    rows = Procedure.objects.filter(instance=scope.instance, id__in=account.procedures, updated_at__lte=account.at)
    entries = {row.id: procedure_entry(row) for row in rows} if account.procedures else {}
    known = [entries[id] for id in account.procedures if id in entries]
    return {entry.id: Placed(line_for(entry, entry.wordings[0].text), "content") for entry in known}


def _as_they_were(scope: Scope, ids: Sequence[UUID], moment: datetime) -> Mapping[UUID, MemoryVersion]:
    """Of those that have changed since, the version that was current at the moment."""
    versions = MemoryVersion.objects.filter(instance=scope.instance, memory_id__in=ids, replaced_at__gt=moment)
    return {version.memory_id: version for version in versions.order_by("-number")} if ids else {}


def _shown(line: GivenLine, memory: Memory | None, origin: Instance | None, version: MemoryVersion | None) -> Shown:
    if memory is None:
        return Shown(line, None, False, "")
    said: Said = version or memory
    entry = Entry(memory.id, said.role.upper(), name_of(memory.id, said.key, origin), [])
    return Shown(line, memory, version is not None, line_for(entry, _wording(line, said)), origin)


def _wording(line: GivenLine, said: Said) -> str:
    if line.form == "excerpt" and line.passage:
        start, end = line.passage
        return f"… {said.content[start:end]} …"
    return said.summary if line.form == "summary" and said.summary else said.content
