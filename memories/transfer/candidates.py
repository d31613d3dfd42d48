"""Turning the rows of a file into unsaved memories. Rows that cannot be used are reported by their line."""

from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from django.utils import timezone

from accounts.access import Scope
from memories.models import Memory
from memories.store import content_hash, new_memory, scrub_fields
from memories.transfer.formats.reading import Row
from memories.transfer.formats.row import ImportedMemory
from memories.transfer.formats.values import TOO_DEEP
from memories.transfer.report import Report
from memoryconsole.errors import Invalid
from memoryconsole.ids import EPOCH, time_of, uuid7, uuid7_at
from memoryconsole.inputs import read

SOURCE = "import"
NOT_COLUMNS = frozenset(
    {"dedupe", "versions", "vectors", "superseded_by_id", "id", "source", "created_at", "updated_at"}
)
COLUMNS = tuple(name for name in ImportedMemory.model_fields if name not in NOT_COLUMNS)
_columns = attrgetter(*COLUMNS)
# An id contains its creation time. If it differs by more than this from `createdAt`, the memory gets a new id, because
# lists are sorted by id.
SAME_TIME = timedelta(seconds=1)
# Clocks of other systems may be ahead by this much.
SKEW = timedelta(days=1)


class Candidate(NamedTuple):
    """A row that can be used, and its unsaved memory. `text` identifies repetitions: content hash and owner."""

    line: int
    draft: ImportedMemory
    memory: Memory
    has_own_id: bool
    text: tuple[bytes, str]

    @property
    def key(self) -> tuple[str, str]:
        return self.memory.owner, self.memory.key


def candidate_in(scope: Scope, row: Row, report: Report, started: datetime) -> Candidate | None:
    """The candidate in a row, or None. Counts the row in the report."""
    report.rows += 1
    if row.problem:
        report.add_problem(row.line, {"row": [row.problem]})
    elif row.is_left_out:
        report.left_out += 1
    else:
        try:
            return _candidate(scope, row.line, read(ImportedMemory, row.fields), report, started)
        except Invalid as invalid:
            report.add_problem(row.line, invalid.errors)
        except RecursionError:
            # Parsing worked, but writing the value into an error message did not.
            report.add_problem(row.line, {"row": [TOO_DEEP]})
    return None


def _candidate(scope: Scope, line: int, draft: ImportedMemory, report: Report, started: datetime) -> Candidate:
    # Not `started`: the worker may begin minutes later, and the id would then tell another time.
    created = draft.created_at or timezone.now()
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
    """The id from the file, if it is a UUIDv7 of the creation time. Other instances may have the same id."""
    if draft.id is None or draft.id.version != 7 or draft.created_at is None:
        return None
    try:
        made = time_of(draft.id)
    except ValueError:
        # After the year 9999.
        return None
    return draft.id if abs(made - max(draft.created_at, EPOCH)) < SAME_TIME else None
