"""UUIDv7: ids that sort by the time they were made, so the primary key is also "newest first"."""

import os
import threading
import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
_lock = threading.Lock()
_last = 0


def uuid7() -> UUID:
    """A new id, larger than every id this process made before, also within one millisecond.

    The 12 bits after the version carry the fraction of the millisecond, as RFC 9562 allows.
    """
    global _last
    with _lock:
        tick = max(time.time_ns() * 4096 // 1_000_000, _last + 1)
        _last = tick
    return _assemble(tick, int.from_bytes(os.urandom(8)))


def uuid7_at(moment: datetime) -> UUID:
    """A new id that sorts where `moment` sorts: imported memories keep their place in the list."""
    return _assemble(_tick(moment), int.from_bytes(os.urandom(8)))


def first_id_at(moment: datetime) -> UUID:
    """The smallest id made at or after `moment`, for "created after" and "created before" by primary key."""
    return _assemble(_tick(moment), 0)


def time_of(id: UUID) -> datetime:
    return datetime.fromtimestamp((id.int >> 80) / 1000, UTC)


def parse_id(raw: object) -> UUID | None:
    """The id, or None if it is not a UUID."""
    try:
        return UUID(str(raw))
    except ValueError:
        return None


def _tick(moment: datetime) -> int:
    """Since 1970, exactly: `timestamp()` is a float and rounds. UUIDv7 has no earlier times, so those are 0."""
    return max(0, (moment - EPOCH) // timedelta(microseconds=1)) * 4096 // 1000


def _assemble(tick: int, random: int) -> UUID:
    milliseconds, fraction = divmod(tick, 4096)
    milliseconds &= (1 << 48) - 1
    return UUID(int=milliseconds << 80 | 7 << 76 | fraction << 64 | 2 << 62 | random >> 2)
