"""Exporting all matching memories as a stream of text: page by page, oldest first, with their versions and sources.

Oldest first, because an import numbers the memories of a conversation in their order in the file. No database
connection is held between two pages, however slowly the client reads.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal
from uuid import UUID

from django.db import connection

from accounts.access import Scope
from memories import audit
from memories.filters import Filters, matching
from memories.models import Memory, MemoryVersion
from memories.paging import Order
from memories.presenting import memory_json, version_json
from memories.transfer.formats import table
from memoryconsole.connections import release_connection
from memoryconsole.reading import columns_of, rows_found, rows_of

Format = Literal["jsonl", "csv"]
CONTENT_TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
OLDEST = Order(("id",), descending=False)
PAGE = 1_000
PAGE_WITH_VECTORS = 100
# Fields that mean nothing outside of the instance.
LEFT_OUT = ("instanceId", "embedding")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def export(
    scope: Scope,
    filters: Filters,
    format: Format = "jsonl",
    *,
    vectors: bool = False,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[str]:
    """`vectors` is ignored for CSV."""
    audit.record(scope, "exported", format=format, filters=sorted(filters.narrowing()))
    return _pages(scope, filters, format, vectors=vectors and format == "jsonl", progress=progress)


def _pages(
    scope: Scope, filters: Filters, format: Format, *, vectors: bool, progress: Callable[[int], None]
) -> Iterator[str]:
    if format == "csv":
        yield table.header()
    done = 0
    for memories in _found(scope, filters, PAGE_WITH_VECTORS if vectors else PAGE):
        audit.note_private_reads(scope, memories)
        rows = [_row(scope, memory) for memory in memories]
        if vectors:
            _add_vectors(scope, memories, rows)
        for part in [table.table_text(rows)] if format == "csv" else _lines(scope, rows):
            release_connection()
            yield part
        done += len(memories)
        progress(done)


def _found(scope: Scope, filters: Filters, limit: int) -> Iterator[list[Memory]]:
    every, page = OLDEST.sorted(matching(scope, filters)), list[Memory]()
    while not page or len(page) == limit:
        rest = OLDEST.beyond(every, OLDEST.key_of(page[-1])) if page else every
        page = rows_of(rest[:limit])
        if not page:
            return
        yield page


def _row(scope: Scope, memory: Memory) -> dict[str, Any]:
    row: dict[str, Any] = {**memory_json(memory, scope.instance.slug)}
    for name in LEFT_OUT:
        del row[name]
    return row


def _line(row: dict[str, Any]) -> str:
    return _encode(row) + "\n"


def _lines(scope: Scope, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The rows, which are sorted by id, with their versions. The line of a memory that has very many is in several
    parts."""
    waiting, memory_id = iter(rows), None
    for versions in _versions(scope, [row["id"] for row in rows]):
        parts: list[str] = []
        for version in versions:
            if version.memory_id == memory_id:
                parts.append(",")
            else:
                parts.append("]}\n" if memory_id else "")
                memory_id = version.memory_id
                row = next(waiting)
                while row["id"] != str(memory_id):
                    parts.append(_line(row))
                    row = next(waiting)
                parts.append(_encode(row).removesuffix("}") + ',"versions":[')
            parts.append(_encode(version_json(version)))
        yield "".join(parts)
    yield ("]}\n" if memory_id else "") + "".join(map(_line, waiting))


VERSIONS = f"""
SELECT {columns_of(MemoryVersion, "v")} FROM memories_memoryversion v
WHERE v.instance_id = %(instance)s AND v.memory_id = ANY(%(ids)s::uuid[])
  AND (v.memory_id, v.number) > (%(memory)s::uuid, %(number)s::bigint)
ORDER BY v.memory_id, v.number LIMIT %(limit)s::bigint
"""


def _versions(scope: Scope, ids: Sequence[str]) -> Iterator[list[MemoryVersion]]:
    """The versions of these memories, a page at a time."""
    parameters = {"instance": scope.instance.id, "ids": ids, "memory": UUID(int=0), "number": 0, "limit": PAGE}
    found: list[MemoryVersion] = []
    while not found or len(found) == PAGE:
        found = rows_found(MemoryVersion, VERSIONS, parameters)
        if not found:
            return
        yield found
        parameters |= {"memory": found[-1].memory_id, "number": found[-1].number}


# Vectors of the current texts; `text_hash` is the hash of the embedded text.
VECTORS = """
SELECT c.memory_id, encode(c.text_hash, 'hex'), halfvec_send(e.vector)
FROM memories_chunk c JOIN memories_embedding e
     ON e.instance_id = %(instance)s AND e.chunk_id = c.id AND e.generation = %(generation)s
WHERE c.instance_id = %(instance)s AND c.memory_id = ANY(%(ids)s) AND c.version_id IS NULL
ORDER BY c.memory_id, c.position
"""


def _add_vectors(scope: Scope, memories: Sequence[Memory], rows: Sequence[dict[str, Any]]) -> None:
    instance = scope.instance
    parameters: dict[str, Any] = {
        "instance": instance.id,
        "generation": instance.embedding_generation,
        "ids": [memory.id for memory in memories],
    }
    found: dict[UUID, dict[str, str]] = {}
    with connection.cursor() as cursor:
        cursor.execute(VECTORS, parameters)
        for memory_id, text_hash, sent in cursor.fetchall():
            # The first four bytes are the number of dimensions; the rest are big-endian half-precision numbers.
            found.setdefault(memory_id, {})[text_hash] = b64encode(bytes(sent)[4:]).decode()
    for memory, row in zip(memories, rows, strict=True):
        if memory.id in found:
            row["vectors"] = {"model": instance.embedding_model, "byText": found[memory.id]}
