"""Bringing in what was remembered elsewhere, from a file of any size, in bounded memory.

Rows are stored a batch at a time, each batch in a transaction of its own; meanwhile the next one is read. A row that
cannot be used is left out and reported by its line; the others come in. Importing the same file again changes nothing:
a row that carries an id of ours is known by it, every other one by its key, or else by its content and owner.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from operator import attrgetter
from typing import IO, Any, NamedTuple
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from accounts.access import Scope
from conversations.models import Conversation, Message
from memories import audit, expiry, indexing
from memories.embedding.backfill import embed_soon
from memories.inserting import insert_many, new_rows
from memories.models import Memory
from memories.store import content_hash, new_memory, scrub_fields
from memories.transfer import versions
from memories.transfer.formats.detecting import Format
from memories.transfer.formats.reading import Row, found_format, rows_of
from memories.transfer.formats.row import ImportedMemory
from memories.transfer.formats.values import TOO_DEEP
from memories.transfer.vectors import store_vectors
from memories.vocabulary import Status
from memoryconsole.errors import Invalid
from memoryconsole.ids import parse_id, time_of, uuid7, uuid7_at
from memoryconsole.inputs import read
from memoryconsole.turns import wait_for_turn

BATCH = 1_000
BATCH_BYTES = 16 * 1024 * 1024
PROBLEMS_SHOWN = 100
ATTEMPTS = 3
SOURCE = "import"
NOT_COLUMNS = frozenset(
    {"dedupe", "versions", "vectors", "superseded_by_id", "id", "source", "created_at", "updated_at"}
)
COLUMNS = tuple(name for name in ImportedMemory.model_fields if name not in NOT_COLUMNS)
_columns = attrgetter(*COLUMNS)
# An id says when its memory was created; one that says something else would stand in the wrong place.
SAME_TIME = timedelta(seconds=1)
SKEW = timedelta(days=1)
Progress = Callable[["Report", int], None]


@dataclass(slots=True)
class Report:
    """What came of a file, read as `format`. `problems` are the first ones, by line; `invalid` counts them all."""

    format: str = ""
    rows: int = 0
    created: int = 0
    existing: int = 0
    left_out: int = 0
    invalid: int = 0
    redacted: int = 0
    dropped_links: int = 0
    problems: list[dict[str, Any]] = field(default_factory=list)

    def add_problem(self, line: int, reasons: dict[str, list[str]]) -> None:
        self.invalid += 1
        if len(self.problems) < PROBLEMS_SHOWN:
            self.problems.append({"line": line, "errors": reasons})

    def add(self, other: "Report") -> None:
        for name, value in asdict(other).items():
            if name not in ("format", "problems"):
                setattr(self, name, getattr(self, name) + value)
        self.problems = (self.problems + other.problems)[:PROBLEMS_SHOWN]


class Candidate(NamedTuple):
    """A row that can be used, and the memory it would become; `text` is how a repetition is known."""

    line: int
    draft: ImportedMemory
    memory: Memory
    has_own_id: bool
    text: tuple[bytes, str]

    @property
    def key(self) -> tuple[str, str]:
        return self.memory.owner, self.memory.key


class Batch(NamedTuple):
    """Rows of a file that are stored together, what is wrong with the others, and where the file goes on."""

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
    """Store what is new in the file, or with `dry_run` only say what would be.

    The format is found out unless it is given, if need be with the help of the file's `name`.
    `started` marks what this import has stored. To go on with it after a crash, it is given again, with the report
    `so_far`: the last one that `progress` was handed, in the transaction that stored the rows it counts.
    """
    scope.require_write()
    started = started or timezone.now()
    format = format or found_format(file, name)
    report = so_far or Report(format)
    has_successors = report.rows > 0
    with closing(_read_ahead(_batches(scope, file, format, started, report.rows))) as batches:
        for batch in batches:
            has_successors = has_successors or any(each.draft.superseded_by_id for each in batch.candidates)
            report = _store_again(scope, batch, report, started, progress, dry_run=dry_run)
    if has_successors and not dry_run:
        _link_successors(scope, rows_of(file, format))
    return report


def _read_ahead(batches: Iterator[Batch]) -> Generator[Batch]:
    """One batch, by a thread that never asks the database: while that stores, this one would only wait."""
    with ThreadPoolExecutor(1, "import") as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch


def _batches(scope: Scope, file: IO[bytes], format: Format, started: datetime, done: int) -> Iterator[Batch]:
    """Not too many rows, nor too long ones: both together is what an import needs of memory."""
    batch = Batch([], Report(), 0)
    for row in islice(rows_of(file, format), done, None):
        _check(scope, row, batch, started)
        if batch.report.rows == BATCH or file.tell() > batch.position + BATCH_BYTES:
            yield batch._replace(position=file.tell())
            batch = Batch([], Report(), file.tell())
    if batch.report.rows:
        yield batch._replace(position=file.tell())


def _check(scope: Scope, row: Row, batch: Batch, started: datetime) -> None:
    report = batch.report
    report.rows += 1
    if row.problem:
        report.add_problem(row.line, {"row": [row.problem]})
    elif row.is_left_out:
        report.left_out += 1
    else:
        try:
            draft = read(ImportedMemory, row.fields)
            batch.candidates.append(_candidate(scope, row.line, draft, report, started))
        except Invalid as invalid:
            report.add_problem(row.line, invalid.errors)
        except RecursionError:
            # Shallow enough to be parsed, and too deep to be written into a reason.
            report.add_problem(row.line, {"row": [TOO_DEEP]})


def _candidate(scope: Scope, line: int, draft: ImportedMemory, report: Report, started: datetime) -> Candidate:
    created = draft.created_at or started
    if max(created, draft.updated_at or created) > timezone.now() + SKEW:
        raise Invalid({"createdAt": ["This is in the future."]})
    fields = dict(zip(COLUMNS, _columns(draft), strict=True))
    report.redacted += bool(scrub_fields(fields))
    id = _own_id(draft)
    fields |= {
        "instance_id": scope.instance.id,
        "id": id or (uuid7_at(created) if draft.created_at else uuid7()),
        "source": draft.source or SOURCE,
        "content_hash": content_hash(fields["content"]),
        "created_at": created,
        "updated_at": draft.updated_at or created,
        "last_seen_at": started,
    }
    return Candidate(line, draft, new_memory(fields), id is not None, (fields["content_hash"], draft.owner))


def _own_id(draft: ImportedMemory) -> UUID | None:
    """The id it had, if it is one of ours: another instance may have the same, and it keeps its place in the list."""
    if draft.id is None or draft.id.version != 7 or draft.created_at is None:
        return None
    try:
        made = time_of(draft.id)
    except ValueError:
        # After the year 9999.
        return None
    return draft.id if abs(made - draft.created_at) < SAME_TIME else None


def _store_again(
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
            # Somebody took a key or an id between our look and our insert: look again, theirs is there now.
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def _store(scope: Scope, candidates: Sequence[Candidate], started: datetime, *, dry_run: bool) -> Report:
    report = Report()
    if not dry_run:
        # Two imports into one instance, a batch each: neither misses what the other has just stored.
        wait_for_turn(f"import {scope.instance.id}")
        expiry.release_keys(scope, [each.memory.key for each in candidates])
    added = list(_new(_Known(scope, candidates, started), candidates, report))
    _drop_links(scope, added, report)
    report.created += len(added)
    if added and not dry_run:
        _insert(scope, added)
    return report


# The statistics do not know yet what an import has stored: to PostgreSQL the instance is empty, and reading all of it
# as good as any index. Only an order that no other index has makes it take the right one, for each row by itself.
# Nobody learns by importing what is in memories they may not read, and what has expired is as good as gone.
UNEXPIRED = "(expires_at IS NULL OR expires_at > statement_timestamp())"
KNOWN_IDS = """
SELECT m.id FROM unnest(%(ids)s::uuid[]) AS wanted (id) CROSS JOIN LATERAL (
    SELECT id FROM memories_memory
    WHERE instance_id = %(instance)s AND id BETWEEN wanted.id AND wanted.id ORDER BY id
) m
"""
KNOWN_KEYS = f"""
SELECT m.owner, m.key, m.content_hash FROM unnest(%(owners)s::text[], %(keys)s::text[]) AS wanted (owner, key)
CROSS JOIN LATERAL (
    SELECT owner, key, content_hash FROM memories_memory
    WHERE instance_id = %(instance)s AND status = 'active' AND NOT key = ''
      AND owner = wanted.owner AND key BETWEEN wanted.key AND wanted.key AND {UNEXPIRED} ORDER BY key
) m
"""
KNOWN_TEXTS = f"""
SELECT m.content_hash, m.owner, m.last_seen_at = %(started)s FROM unnest(%(hashes)s::bytea[]) AS wanted (content_hash)
CROSS JOIN LATERAL (
    SELECT content_hash, owner, last_seen_at FROM memories_memory
    WHERE instance_id = %(instance)s AND content_hash BETWEEN wanted.content_hash AND wanted.content_hash
      AND (%(reader)s::text IS NULL OR visibility <> 'private' OR owner = %(reader)s::text) AND {UNEXPIRED}
    ORDER BY content_hash
) m
"""


class _Known:
    """What the instance has already, of all that a batch might repeat."""

    def __init__(self, scope: Scope, candidates: Sequence[Candidate], started: datetime) -> None:
        named: dict[str, Any] = {
            "instance": scope.instance.id,
            "ids": [each.memory.id for each in candidates if each.has_own_id],
            "keys": [each.memory.key for each in candidates if each.memory.key],
            "owners": [each.memory.owner for each in candidates if each.memory.key],
            "hashes": list({each.text[0] for each in candidates}),
            "started": started,
            "reader": scope.private_memories_of,
        }
        self.ids = {id for (id,) in _rows(KNOWN_IDS, named)} if named["ids"] else set()
        holders = _rows(KNOWN_KEYS, named) if named["keys"] else []
        self.keys = {(owner, key): bytes(content_hash) for owner, key, content_hash in holders}
        # Two memories of the file may say the same; what was there before it is not repeated.
        found = [((bytes(text_hash), owner), is_ours) for text_hash, owner, is_ours in _rows(KNOWN_TEXTS, named)]
        self.texts = {text for text, _ in found}
        self.earlier_texts = {text for text, is_from_this_file in found if not is_from_this_file}


def _rows(statement: str, named: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {name: value for name, value in named.items() if f"%({name})s" in statement})
        return list(cursor.fetchall())


def _new(known: _Known, candidates: Sequence[Candidate], report: Report) -> Iterator[Candidate]:
    for each in candidates:
        holder = known.keys.get(each.key) if each.memory.key and each.memory.status == Status.ACTIVE else None
        texts = known.earlier_texts if each.has_own_id else known.texts
        if each.memory.id in known.ids or holder == each.text[0]:
            report.existing += 1
        elif holder is not None:
            report.add_problem(each.line, {"key": ["Another memory has this key, and says something else."]})
        elif not each.memory.key and each.text in texts:
            report.existing += 1
        elif each.memory.expires_at is not None and each.memory.expires_at <= timezone.now():
            report.left_out += 1
        else:
            _remember(known, each)
            yield each


def _remember(known: _Known, new: Candidate) -> None:
    known.ids.add(new.memory.id)
    known.texts.add(new.text)
    if new.memory.key and new.memory.status == Status.ACTIVE:
        known.keys[new.key] = new.text[0]


def _drop_links(scope: Scope, candidates: Sequence[Candidate], report: Report) -> None:
    """Conversations and messages that this instance does not have cannot be pointed to."""
    conversations = {id for each in candidates if (id := each.memory.source_conversation_id)}
    messages = {id for each in candidates for id in each.memory.source_message_ids}
    if not conversations and not messages:
        return
    there = set(Conversation.objects.filter(instance=scope.instance, id__in=conversations).values_list("id", flat=True))
    said = set(Message.objects.filter(instance=scope.instance, id__in=messages).values_list("id", flat=True))
    for each in candidates:
        memory = each.memory
        kept = [id for id in memory.source_message_ids if id in said]
        report.dropped_links += len(memory.source_message_ids) - len(kept)
        memory.source_message_ids = kept
        if memory.source_conversation_id and memory.source_conversation_id not in there:
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
    """A memory comes before the one that has taken its place, so the links are made when all of them are there."""
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
