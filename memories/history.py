"""A memory's history: its versions, each with what the next change did to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from accounts.access import Scope
from conversations.models import Message
from memories.diff import Diff, diff
from memories.models import Memory, MemoryVersion
from memories.paging import Order, Page, page_of
from memories.versions import history

NEWEST = Order(("number",))
# The fields of a version besides its content.
FIELDS = ("key", "summary", "category", "role", "importance", "confidence", "evidence", "tags")


@dataclass(frozen=True, slots=True)
class Changed:
    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Step:
    """A version, and the state of the memory after the change that replaced it."""

    version: MemoryVersion
    after: MemoryVersion | Memory
    message: Message | None

    @property
    def text(self) -> Diff:
        return diff(self.version.content, self.after.content)

    @property
    def fields(self) -> list[Changed]:
        pairs = ((name, getattr(self.version, name), getattr(self.after, name)) for name in FIELDS)
        # Old versions lack some fields.
        known = (each for each in pairs if None not in each)
        return [Changed(name, _shown(before), _shown(after)) for name, before, after in known if before != after]


def history_page(scope: Scope, memory: Memory, *, number: int, size: int, anchor: str = "") -> Page[MemoryVersion]:
    """Newest first."""
    rows = history(scope, memory)
    return page_of(rows, NEWEST, number=number, size=size, total=rows.count(), anchor=anchor)


def steps(scope: Scope, memory: Memory, versions: Sequence[MemoryVersion]) -> list[Step]:
    """The steps of consecutive versions, newest first."""
    if not versions:
        return []
    newest = history(scope, memory).filter(number=versions[0].number + 1).first() or memory
    messages = _messages(scope, versions)
    pairs = zip(versions, [newest, *versions], strict=False)
    return [Step(version, after, messages.get(version.source_message_id)) for version, after in pairs]


def _messages(scope: Scope, versions: Sequence[MemoryVersion]) -> dict[UUID | None, Message]:
    ids = [version.source_message_id for version in versions if version.source_message_id]
    rows = Message.objects.filter(instance=scope.instance, id__in=ids).only("id", "conversation_id") if ids else []
    return {message.id: message for message in rows}


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_shown(part)}" for name, part in sorted(value.items()))
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
