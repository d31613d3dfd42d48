"""Reading the facts that a language model proposes: validating them and clamping them to the limits of a memory.

An answer that cannot be read at all raises `Unreadable`; a single invalid fact is left out and counted.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from memories.learning.llm import Unreadable, read_json
from memories.vocabulary import Category, Role, category_named
from memoryconsole.inputs import visible
from memoryconsole.scrub import scrub

# Longer than any sentence; a fact is always one chunk.
MAX_FACT = 1_000
LONGEST_WORD = 60
# If there are too many facts, categories are kept in this order.
ORDER = (
    Category.DECISION,
    Category.PREFERENCE,
    Category.RELATIONSHIP,
    Category.EVENT,
    Category.FACT,
    Category.GENERAL,
)


@dataclass(frozen=True, slots=True)
class Fact:
    content: str
    category: Category
    importance: int
    role: Role = Role.CONTEXT
    message: int | None = None
    """The index of the message that says it."""
    occurred_at: datetime | None = None
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Facts:
    kept: Sequence[Fact]
    skipped: int = 0


def read_facts(text: str, *, is_new: Sequence[bool], zone: tzinfo, limit: int) -> Facts:
    """Read the facts from an answer, and keep those that are not from old messages."""
    answer = read_json(text)
    proposed = answer.get("memories") if isinstance(answer, dict) else None
    if not isinstance(proposed, list):
        raise Unreadable("it has no list of memories")
    facts = [fact for entry in proposed if (fact := _read(entry, len(is_new), zone))]
    if proposed and not facts:
        raise Unreadable("none of its memories has content, category and importance")
    new = [fact for fact in facts if fact.message is None or is_new[fact.message]]
    different = list({same_text(fact.content): fact for fact in reversed(new)}.values())[::-1]
    kept = sorted(different, key=lambda fact: (ORDER.index(fact.category), -fact.importance))[:limit]
    return Facts(kept, skipped=len(proposed) - len(kept))


def same_text(content: str) -> str:
    """The text without differences in case, white space and final punctuation, to compare it with others."""
    return " ".join(unicodedata.normalize("NFKC", content).casefold().split()).rstrip(".!。 ")


def read_summary(text: str, longest: int) -> str:
    answer = read_json(text)
    summary = answer.get("summary") if isinstance(answer, dict) else None
    if not isinstance(summary, str) or not (tidied := _tidy(summary, longest)):
        raise Unreadable("it has no summary")
    return tidied


def _text(value: object) -> str:
    tidied = _tidy(value, MAX_FACT) if isinstance(value, str) else ""
    return visible(tidied)


def _tidy(value: str, longest: int) -> str:
    """The text as one line that PostgreSQL can store, without credentials and not too long."""
    storable = value.encode(errors="ignore").decode().replace("\x00", " ")
    text = scrub(" ".join(storable.split()))[0]
    return text if len(text) <= longest else _cut(text, longest - 1) + "…"


def _cut(text: str, length: int) -> str:
    """Cut between two words, or anywhere in scripts that have no spaces, such as Chinese."""
    end = text.rfind(" ", length - LONGEST_WORD, length + 1)
    return text[: end if end > 0 else length].rstrip()


def _clamped(low: float, high: float) -> BeforeValidator:
    def clamp(value: object) -> float:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
        if number is None or number != number:
            raise ValueError("not a number")
        return min(max(number, low), high)

    return BeforeValidator(clamp)


def _category(word: object) -> tuple[Category, Role | None]:
    if not isinstance(word, str):
        raise ValueError("no category")
    try:
        return category_named(word)
    except ValueError:
        return Category.GENERAL, None


class _Proposed(BaseModel):
    """What the model is asked for. The last three fields are read separately: a wrong one does not spoil the fact."""

    content: Annotated[str, BeforeValidator(_text)]
    category: Annotated[tuple[Category, Role | None], BeforeValidator(_category)]
    importance: Annotated[float, _clamped(1, 10)]
    message_index: Any = Field(None, alias="messageIndex")
    occurred_at: Any = Field(None, alias="occurredAt")
    confidence: Any = None


class _Sure(BaseModel):
    confidence: Annotated[float, _clamped(0, 1)]


def _read(entry: object, messages: int, zone: tzinfo) -> Fact | None:
    try:
        proposed = _Proposed.model_validate(entry)
    except (ValidationError, OverflowError):
        return None
    category, role = proposed.category
    return Fact(
        content=proposed.content,
        category=category,
        importance=round(proposed.importance),
        role=role or Role.CONTEXT,
        message=_message(proposed.message_index, messages),
        occurred_at=_moment(proposed.occurred_at, zone),
        confidence=_confidence(proposed.confidence),
    )


def _message(index: object, messages: int) -> int | None:
    if not isinstance(index, int) or isinstance(index, bool):
        return None
    return index if 0 <= index < messages else None


def _confidence(value: object) -> float:
    try:
        return _Sure.model_validate({"confidence": value}).confidence
    except (ValidationError, OverflowError):
        return 1.0


def _moment(value: object, zone: tzinfo) -> datetime | None:
    """A date without a time is its beginning; without a time zone, the conversation's is assumed."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
