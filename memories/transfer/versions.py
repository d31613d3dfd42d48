"""Storing the versions of imported memories, with chunks for earlier texts."""

from collections.abc import Sequence
from uuid import UUID

from accounts.access import Scope
from conversations.models import Message
from memories.indexing import chunks_of_earlier
from memories.inserting import insert_many, new_rows
from memories.links import existing
from memories.models import Memory, MemoryVersion
from memories.transfer.formats.row import ImportedVersion
from memoryconsole.ids import uuid7
from memoryconsole.scrub import scrub_all

Earlier = Sequence[tuple[Memory, Sequence[ImportedVersion]]]


def store_versions(scope: Scope, earlier: Earlier) -> None:
    messages = existing(scope, Message, {id for _, each in earlier for one in each if (id := one.source_message_id)})
    kept = [
        (memory, _version(scope, memory, version, messages))
        for memory, versions in earlier
        for version in {each.version: each for each in versions}.values()
    ]
    # Only a version with another content needs chunks of its own.
    with_chunks = [(memory, version) for memory, version in kept if memory.content != version.content]
    insert_many(new_rows(MemoryVersion, [version for _, version in kept]), chunks_of_earlier(scope, with_chunks))


def _version(scope: Scope, memory: Memory, version: ImportedVersion, messages: set[UUID]) -> MemoryVersion:
    fields = version.model_dump(exclude={"version", "source_message_id"})
    for name in ("content", "summary", "key", "reason", "tags", "evidence"):
        fields[name] = scrub_all(fields[name])[0]
    source = version.source_message_id if version.source_message_id in messages else None
    return MemoryVersion(
        instance=scope.instance,
        id=uuid7(),
        memory_id=memory.id,
        number=version.version,
        source_message_id=source,
        **fields,
    )
