"""The earlier texts of memories that come from a file: kept, and found when they are asked for."""

from collections.abc import Sequence

from accounts.access import Scope
from conversations.models import Message
from memories.indexing import chunks_of_earlier
from memories.inserting import insert_many, new_rows
from memories.models import Memory, MemoryVersion
from memories.transfer.formats.row import ImportedVersion
from memoryconsole.ids import uuid7
from memoryconsole.scrub import scrub_all

Earlier = Sequence[tuple[Memory, Sequence[ImportedVersion]]]


def store_versions(scope: Scope, earlier: Earlier) -> None:
    there = _messages(scope, earlier)
    kept = [
        (memory, _version(scope, memory, version, there))
        for memory, versions in earlier
        for version in {each.version: each for each in versions}.values()
    ]
    # Only an earlier content has pieces of its own: a change of the importance leaves those of the memory.
    said = [(memory, version) for memory, version in kept if memory.content != version.content]
    insert_many(new_rows(MemoryVersion, [version for _, version in kept]), chunks_of_earlier(scope, said))


def _messages(scope: Scope, earlier: Earlier) -> set[object]:
    wanted = {id for _, versions in earlier for version in versions if (id := version.source_message_id)}
    if not wanted:
        return set()
    return set(Message.objects.filter(instance=scope.instance, id__in=wanted).values_list("id", flat=True))


def _version(scope: Scope, memory: Memory, version: ImportedVersion, there: set[object]) -> MemoryVersion:
    fields = version.model_dump(exclude={"version", "source_message_id"})
    for name in ("content", "summary", "key", "reason", "tags", "evidence"):
        fields[name] = scrub_all(fields[name])[0]
    source = version.source_message_id if version.source_message_id in there else None
    return MemoryVersion(
        instance=scope.instance,
        id=uuid7(),
        memory_id=memory.id,
        number=version.version,
        source_message_id=source,
        **fields,
    )
