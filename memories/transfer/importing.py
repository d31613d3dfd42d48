"""Importing memories from a file of any size, in bounded memory.

Rows are stored in batches, each in its own transaction, while the next batch is being read. A row that cannot be used
is reported by its line, and the others are imported. Importing the same file again changes nothing: a row with an id of
ours is recognised by it, and any other row by its key, or by its content and owner.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import IO, NamedTuple

from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from accounts.access import Scope
from conversations.models import Conversation, Message
from memories import audit, expiry, indexing
from memories.embedding.backfill import embed_soon
from memories.inserting import insert_many, new_rows
from memories.links import existing
from memories.models import Memory
from memories.transfer import versions
from memories.transfer.candidates import Candidate, candidate_in
from memories.transfer.formats.detecting import Format
from memories.transfer.formats.reading import Row, detect_format, rows_of
from memories.transfer.known import Known, new_among
from memories.transfer.report import Report
from memories.transfer.vectors import store_vectors
from memoryconsole.ids import parse_id
from memoryconsole.turns import wait_for_turn

BATCH = 1_000
BATCH_BYTES = 16 * 1024 * 1024
ATTEMPTS = 3
Progress = Callable[[Report, int], None]


class Batch(NamedTuple):
    """Rows of a file that are stored together, the report about them, and the position after them."""

    candidates: list[Candidate]
    report: Report
    position: int


def import_file(
    scope: Scope,
    file: IO[bytes],
    format: Format | None = None,
    *,
    name: str = "",
    dry_run: bool = False,
    started: datetime | None = None,
    so_far: Report | None = None,
    progress: Progress = lambda report, position: None,
) -> Report:
    """Store what is new in the file, or with `dry_run` only report what would be stored.

    Without a `format` it is detected, from the content and the file's `name`.
    `progress` is called with the report and the position, in the transaction that stores the rows it counts. `started`
    is when the file was handed in, and marks what this import has stored. To continue after a crash, pass the same
    `started`, and the last report as `so_far`.
    """
    scope.require_write()
    started = started or timezone.now()
    format = format or detect_format(file, name)
    report = so_far or Report(format)
    has_successors = report.rows > 0
    with closing(_read_ahead(_batches(scope, file, format, started, report.rows))) as batches:
        for batch in batches:
            has_successors = has_successors or any(each.draft.superseded_by_id for each in batch.candidates)
            report = _store_batch(scope, batch, report, started, progress, dry_run=dry_run)
    if has_successors and not dry_run:
        _link_successors(scope, rows_of(file, format))
    return report


def _read_ahead(batches: Iterator[Batch]) -> Generator[Batch]:
    """Read the next batch in a thread while the caller stores the current one. The thread must not use the database."""
    with ThreadPoolExecutor(1, "import") as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch


def _batches(scope: Scope, file: IO[bytes], format: Format, started: datetime, done: int) -> Iterator[Batch]:
    """Batches that are limited by number of rows and by bytes, which limits the memory an import needs."""
    batch = Batch([], Report(), 0)
    for row in islice(rows_of(file, format), done, None):
        if candidate := candidate_in(scope, row, batch.report, started):
            batch.candidates.append(candidate)
        if batch.report.rows == BATCH or file.tell() > batch.position + BATCH_BYTES:
            yield batch._replace(position=file.tell())
            batch = Batch([], Report(), file.tell())
    if batch.report.rows:
        yield batch._replace(position=file.tell())


def _store_batch(
    scope: Scope, batch: Batch, so_far: Report, started: datetime, progress: Progress, *, dry_run: bool
) -> Report:
    for attempt in range(1, ATTEMPTS + 1):
        report = replace(so_far)
        report.add(batch.report)
        try:
            with transaction.atomic():
                report.add(_store(scope, batch.candidates, started, dry_run=dry_run))
                progress(report, batch.position)
            return report
        except IntegrityError:
            # Somebody took a key or an id after we looked for it. The next attempt finds theirs.
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def _store(scope: Scope, candidates: Sequence[Candidate], started: datetime, *, dry_run: bool) -> Report:
    report = Report()
    if not dry_run:
        # Imports into one instance take turns by batch, so that each sees what the other has just stored.
        wait_for_turn(f"import {scope.instance.id}")
        indexing.hold_settings(scope)
        expiry.release_keys(scope, [each.memory.key for each in candidates])
    added = list(new_among(candidates, Known(scope, candidates, started), report))
    _drop_links(scope, added, report)
    report.created += len(added)
    if added and not dry_run:
        _insert(scope, added)
    return report


def _drop_links(scope: Scope, candidates: Sequence[Candidate], report: Report) -> None:
    """Remove links to conversations and messages that this instance does not have."""
    conversations = {id for each in candidates if (id := each.memory.source_conversation_id)}
    messages = {id for each in candidates for id in each.memory.source_message_ids}
    if not conversations and not messages:
        return
    conversations = existing(scope, Conversation, conversations)
    messages = existing(scope, Message, messages)
    for each in candidates:
        memory = each.memory
        kept = [id for id in memory.source_message_ids if id in messages]
        report.dropped_links += len(memory.source_message_ids) - len(kept)
        memory.source_message_ids = kept
        if memory.source_conversation_id and memory.source_conversation_id not in conversations:
            report.dropped_links += 1
            memory.source_conversation_id = None


def _insert(scope: Scope, new: Sequence[Candidate]) -> None:
    memories = [each.memory for each in new]
    indexing.place_in_conversations(scope, memories)
    insert_many(
        new_rows(Memory, memories),
        indexing.new_chunks(scope, memories),
        audit.entry(scope, "imported", [memory.id for memory in memories]),
    )
    if earlier := [(each.memory, each.draft.versions) for each in new if each.draft.versions]:
        versions.store_versions(scope, earlier)
    store_vectors(scope, [(each.memory, each.draft.vectors) for each in new if each.draft.vectors])
    embed_soon(scope)


LINK = """
UPDATE memories_memory m SET superseded_by_id = n.id
FROM unnest(%(old)s::uuid[], %(new)s::uuid[]) AS pair (old, new) JOIN memories_memory n
     ON n.instance_id = %(instance)s AND n.id = pair.new
WHERE m.instance_id = %(instance)s AND m.id = pair.old AND m.status = 'superseded' AND m.superseded_by_id IS NULL
"""


def _link_successors(scope: Scope, rows: Iterator[Row]) -> None:
    """Link superseded memories to their successors, at the end, because a successor comes later in the file."""
    while batch := list(islice(rows, BATCH)):
        pairs = [
            (row.fields["id"], row.fields["supersededById"])
            for row in batch
            if row.fields.get("supersededById") and row.fields.get("id")
        ]
        if pairs:
            old, new = ([str(pair[side]) for pair in pairs if all(map(_is_id, pair))] for side in (0, 1))
            with connection.cursor() as cursor:
                cursor.execute(LINK, {"instance": scope.instance.id, "old": old, "new": new})


def _is_id(value: object) -> bool:
    return isinstance(value, str) and parse_id(value) is not None
