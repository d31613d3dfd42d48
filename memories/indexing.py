"""Keeping chunks in step with memories, in the transaction that writes the memory.

A memory is found by its words as soon as the transaction commits. Vectors are made later by a job
(`memories/embedding/backfill.py`), because no network call belongs in a transaction. Until then the memory is
`pending`.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Max, QuerySet
from procrastinate.contrib.django import app

from accounts.access import Scope
from conversations.models import Conversation
from instances.models import Instance
from memories.chunking import day_in_words, speaker, split, undated, word_count
from memories.inserting import Rows, insert_one
from memories.models import Chunk, Embedding, Memory, MemoryVersion
from memories.vocabulary import Status
from memoryconsole.ids import uuid7

# Fields of a memory that are in a chunk's `about`: a change updates the chunks.
DESCRIBING = frozenset({"summary", "key", "tags", "occurred_at"})
# Fields that are part of the embedded text: a change makes new chunks.
EMBEDDED = frozenset({"content", "owner"})
# What texts of an instance are indexed and embedded by.
SETTINGS = ("language", "embedder", "openai_key", "embedding_model", "embedding_generation")
SEPARATORS = str.maketrans("-_:", "   ")
MAX_LENGTH = 32_767
LANGUAGE_BATCH = 500


def read_settings_again(scope: Scope) -> None:
    """Call this in a transaction that ends long work: somebody may have changed the language or the model meanwhile."""
    with suppress(Instance.DoesNotExist):  # what is stored next says that the instance is gone
        scope.instance.refresh_from_db(fields=SETTINGS)


HOLD = "SELECT FROM instances_instance WHERE id = %s FOR SHARE"


def hold_settings(scope: Scope) -> None:
    """Read them again, and let nobody change them before the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(HOLD, [scope.instance.id])
    read_settings_again(scope)


def place_in_conversations(scope: Scope, memories: Sequence[Memory]) -> None:
    """Number memories within their conversation, because search also ranks the neighbours of a hit."""
    conversations = {memory.source_conversation_id for memory in memories if memory.source_conversation_id}
    if not conversations:
        return
    # Lock the conversations, so that no two memories get the same position.
    to_lock = Conversation.objects.filter(instance=scope.instance, id__in=conversations).order_by("id")
    list(to_lock.select_for_update(no_key=True).values_list("id"))
    rows = Memory.objects.filter(instance=scope.instance, source_conversation_id__in=conversations)
    last = dict(rows.order_by().values_list("source_conversation_id").annotate(Max("conversation_position")))
    for memory in memories:
        if memory.source_conversation_id:
            last[memory.source_conversation_id] = last.get(memory.source_conversation_id, 0) + 1
            memory.conversation_position = last[memory.source_conversation_id]


def new_chunks(scope: Scope, memories: Sequence[Memory]) -> Rows:
    rows = (chunk for memory in memories for chunk in _chunks(scope, memory, memory))
    return Rows(Chunk._meta.db_table, COLUMNS, rows)


def chunks_of_earlier(scope: Scope, versions: Sequence[tuple[Memory, MemoryVersion]]) -> Rows:
    """Chunks of earlier texts, as if the memories had been stored with them and changed later."""
    rows = (chunk for memory, version in versions for chunk in _chunks(scope, memory, version))
    return Rows(Chunk._meta.db_table, COLUMNS, rows)


def index_changed(scope: Scope, memory: Memory, changed: Collection[str], version: MemoryVersion | None) -> None:
    """After a change: make new chunks if the embedded text changed, or only update what describes them."""
    if "source_conversation_id" in changed:
        _move(scope, memory)
    if EMBEDDED.isdisjoint(changed):
        if not DESCRIBING.isdisjoint(changed):
            update_descriptions(scope, [memory])
        return
    _retire(scope, memory, version if "content" in changed else None)
    insert_one(new_chunks(scope, [memory]))


def update_descriptions(scope: Scope, memories: Sequence[Memory]) -> None:
    """Write the chunks' `about` anew; their texts and vectors stay."""
    abouts_by_memory = {memory.id: _about(memory, memory) for memory in memories}
    chunks = Chunk.objects.filter(instance=scope.instance, memory_id__in=[*abouts_by_memory], version_id__isnull=True)
    ids, abouts, lengths = [], [], []
    # Locked in the order of their ids, as when vectors are stored: no deadlocks.
    locked = chunks.order_by("id").select_for_update(no_key=True)
    for id, memory_id, content in locked.values_list("id", "memory_id", "content"):
        about = abouts_by_memory[memory_id]
        ids.append(id)
        abouts.append(about)
        lengths.append(min(word_count(content) + word_count(about), MAX_LENGTH))
    with connection.cursor() as cursor:
        cursor.execute(DESCRIBE, [ids, abouts, lengths, scope.instance.id])


DESCRIBE = """
UPDATE memories_chunk c SET about = new.about, length = new.length
FROM unnest(%s::uuid[], %s::text[], %s::smallint[]) AS new (id, about, length)
WHERE c.instance_id = %s AND c.id = new.id
"""


def hide(scope: Scope, memory: Memory) -> None:
    """After a memory is superseded: leave its chunks out of ordinary searches."""
    _current_chunks(scope, memory).update(live=False)
    _hide_vectors(scope, memory)


def show(scope: Scope, memory: Memory) -> None:
    """After a superseded memory becomes active again."""
    _current_chunks(scope, memory).update(live=True)
    with connection.cursor() as cursor:
        cursor.execute(SHOW_VECTORS, {"instance": scope.instance.id, "memory": memory.id})


def has_all_vectors(scope: Scope, memory: Memory) -> bool:
    """Whether every current chunk has a vector; those written while the memory was superseded have none."""
    generation = scope.instance.embedding_generation
    vectors = Embedding.objects.filter(instance=scope.instance, memory_id=memory.id, generation=generation)
    return not _current_chunks(scope, memory).exclude(id__in=vectors.values("chunk_id")).exists()


def use_language(scope: Scope) -> None:
    """Index the words of every chunk again, in the instance's current language.

    In batches, so that somebody who changes a memory meanwhile does not wait for all of them.
    """
    parameters: dict[str, Any] = {
        "instance": scope.instance.id,
        "language": scope.instance.language,
        "most": LANGUAGE_BATCH,
    }
    last: UUID | None = UUID(int=0)
    with connection.cursor() as cursor:
        while last:
            cursor.execute(USE_LANGUAGE, parameters | {"after": last})
            last = cursor.fetchone()[0]


USE_LANGUAGE = """
WITH held AS MATERIALIZED (
    SELECT id FROM memories_chunk
    WHERE instance_id = %(instance)s AND id > %(after)s AND language <> %(language)s::text::regconfig
    ORDER BY id LIMIT %(most)s FOR NO KEY UPDATE
), cut AS (
    UPDATE memories_chunk SET language = %(language)s::text::regconfig
    WHERE instance_id = %(instance)s AND id = ANY(ARRAY(SELECT id FROM held))
)
SELECT (array_agg(id ORDER BY id DESC))[1] FROM held
"""


def use_language_soon(scope: Scope) -> None:
    """Queue `use_language` for the worker, in the transaction that changes the language."""
    app.configure_task("use_language", lock=f"language {scope.instance.id}").defer(instance_id=str(scope.instance.id))


def embedded_text(who: str, content: str) -> str:
    """The text to make a vector of: with the speaker, but without the date, which makes vectors worse
    (see docs/search.md)."""
    return f"{who}: {content}" if who and speaker(content) != who else undated(content)


def text_to_embed(memory: Memory) -> str:
    """`embedded_text` of a memory that is short enough to be one chunk."""
    return embedded_text(_who(memory, memory), memory.content)


COLUMNS = (
    "instance_id",
    "id",
    "memory_id",
    "version_id",
    "position",
    "live",
    "language",
    "who",
    "content",
    "about",
    "text_hash",
    "length",
)


def _chunks(scope: Scope, memory: Memory, text: Memory | MemoryVersion) -> Iterator[tuple[Any, ...]]:
    """Rows of `COLUMNS` rather than model objects, which would be slow to make and are not needed after the insert."""
    version_id = None if text is memory else text.id
    who, about = _who(memory, text), _about(memory, text)
    about_length = word_count(about) if about else 0
    for position, content in enumerate(split(text.content)):
        yield (
            scope.instance.id,
            uuid7(),
            memory.id,
            version_id,
            position,
            version_id is None and memory.status == Status.ACTIVE,
            scope.instance.language,
            who,
            content,
            about,
            sha256(embedded_text(who, content).encode()).digest(),
            min(word_count(content) + about_length, MAX_LENGTH),
        )


def _who(memory: Memory, text: Memory | MemoryVersion) -> str:
    return (speaker(text.content) or memory.owner)[:200]


def _about(memory: Memory, text: Memory | MemoryVersion) -> str:
    parts = [
        day_in_words(memory.occurred_at) if memory.occurred_at else "",
        text.key.translate(SEPARATORS),
        " ".join(text.tags),
        text.summary,
    ]
    return "\n".join(part for part in parts if part)


def _move(scope: Scope, memory: Memory) -> None:
    """Place the memory at the end of its new conversation, if it has one."""
    memory.conversation_position = 0
    place_in_conversations(scope, [memory])
    Memory.objects.filter(pk=memory.pk).update(conversation_position=memory.conversation_position)


def _retire(scope: Scope, memory: Memory, version: MemoryVersion | None) -> None:
    """Give the current chunks and their vectors to the version that keeps the old text; delete them without one."""
    if version is None:
        _current_chunks(scope, memory).delete()
        return
    _current_chunks(scope, memory).update(live=False, version_id=version.id)
    _hide_vectors(scope, memory)


# Run it after updating the chunks, whose rows are locked then: a vector that is being stored at the same time is either
# updated here, or stored later as hidden.
HIDE_VECTORS = """
UPDATE memories_embedding SET live = false
WHERE instance_id = %(instance)s AND live AND chunk_id IN (
    SELECT id FROM memories_chunk WHERE instance_id = %(instance)s AND memory_id = %(memory)s AND NOT live
)
"""

SHOW_VECTORS = """
UPDATE memories_embedding SET live = true
WHERE instance_id = %(instance)s AND NOT live AND chunk_id IN (
    SELECT id FROM memories_chunk WHERE instance_id = %(instance)s AND memory_id = %(memory)s AND live
)
"""


def _hide_vectors(scope: Scope, memory: Memory) -> None:
    with connection.cursor() as cursor:
        cursor.execute(HIDE_VECTORS, {"instance": scope.instance.id, "memory": memory.id})


def _current_chunks(scope: Scope, memory: Memory) -> QuerySet[Chunk]:
    """The chunks of the current text; a superseded memory has them too."""
    return Chunk.objects.filter(instance=scope.instance, memory_id=memory.id, version_id__isnull=True)
