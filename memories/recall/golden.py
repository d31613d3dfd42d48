"""Golden queries: questions with known answers, to measure recall and to try settings before they are saved."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from pydantic import Field, StringConstraints

from accounts.access import Scope
from memories.draft import Name
from memories.filters import readable
from memories.models import GoldenMark, GoldenQuery
from memories.recall.quality import Quality, mean, quality
from memories.recall.recalling import RecallRequest, recall
from memories.recall.request import MAX_QUESTION, RecallSettings
from memories.search.hybrid import Mode
from memories.store import find_memory
from memoryconsole.errors import Invalid, NotFound, Taken
from memoryconsole.finding import find_among
from memoryconsole.inputs import Input, Text
from memoryconsole.scrub import scrub
from memoryconsole.turns import wait_for_turn

MAX_QUERIES = 1_000
MAX_MARKS = 100

Marked = Annotated[list[UUID], Field(max_length=MAX_MARKS)]


class GoldenDraft(Input):
    """A question, and which memories recall should and should not find for it."""

    query: Annotated[Text, StringConstraints(min_length=1, max_length=MAX_QUESTION)]
    user_id: Name = ""
    expected: Marked = []
    unexpected: Marked = []


@dataclass(frozen=True, slots=True)
class Golden:
    row: GoldenQuery
    expected: Sequence[UUID]
    unexpected: Sequence[UUID]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one variant found for one golden query, best first. No quality if the query expects nothing."""

    golden: Golden
    found: Sequence[UUID]
    quality: Quality | None
    mode: str
    reason: str
    """Why it was not found in a better way."""

    @property
    def missed(self) -> list[UUID]:
        return [id for id in self.golden.expected if id not in self.found]

    @property
    def unwanted(self) -> list[UUID]:
        return [id for id in self.found if id in self.golden.unexpected]


@dataclass(frozen=True, slots=True)
class Variant:
    """The answers of one way to recall to all golden queries."""

    name: str
    k: int
    answers: Sequence[Answer]

    @property
    def quality(self) -> Quality | None:
        return mean([answer.quality for answer in self.answers if answer.quality])

    @property
    def unwanted(self) -> int:
        return sum(len(answer.unwanted) for answer in self.answers)


def hindrance(variants: Sequence[Variant]) -> str:
    """Why the current settings found nothing, or words only: memory is off, or vectors cannot be had. Else empty."""
    return next((answer.reason for answer in variants[0].answers if answer.mode in ("off", "keyword")), "")


def golden_queries(scope: Scope) -> list[Golden]:
    """Oldest first."""
    marks = GoldenMark.objects.filter(instance=scope.instance)
    return _with_marks(scope, list(_queries(scope).order_by("id")), marks)


def with_marks(scope: Scope, row: GoldenQuery) -> Golden:
    return _with_marks(scope, [row], _marks_of(scope, row))[0]


def _with_marks(scope: Scope, rows: Sequence[GoldenQuery], marks: QuerySet[GoldenMark]) -> list[Golden]:
    """Add the marked memories that the reader may see."""
    visible = marks.filter(memory_id__in=readable(scope).values("id")).order_by("id")
    marked: dict[tuple[UUID, bool], list[UUID]] = {}
    for golden_id, memory_id, expected in visible.values_list("golden_id", "memory_id", "expected"):
        marked.setdefault((golden_id, expected), []).append(memory_id)
    return [Golden(row, marked.get((row.id, True), []), marked.get((row.id, False), [])) for row in rows]


def save_golden(scope: Scope, draft: GoldenDraft) -> GoldenQuery:
    """Store the query with exactly these memories. If the same user has the same query already, its list is replaced.

    Marks of memories that the writer may not see are kept.
    """
    scope.require_write()
    if set(draft.expected) & set(draft.unexpected):
        raise Invalid({"unexpected": ["A memory is expected or unexpected, not both."]})
    wanted = dict.fromkeys(draft.expected, True) | dict.fromkeys(draft.unexpected, False)
    known = set(readable(scope).filter(id__in=wanted).values_list("id", flat=True))
    if known != wanted.keys():
        raise NotFound("There is no such memory in this instance.")
    with transaction.atomic():
        golden = _get_or_create(scope, draft.query, draft.user_id)
        _marks_of(scope, golden).filter(memory_id__in=readable(scope).values("id")).delete()
        GoldenMark.objects.bulk_create(
            GoldenMark(instance=scope.instance, golden_id=golden.id, memory_id=id, expected=expected)
            for id, expected in wanted.items()
        )
    return golden


@transaction.atomic
def mark(scope: Scope, *, query: str, user_id: str, raw_memory_id: object, expected: bool | None) -> GoldenQuery:
    """Mark one memory as expected or unexpected for the query; None removes the mark."""
    scope.require_write()
    memory = find_memory(scope, raw_memory_id)
    golden = _get_or_create(scope, query, user_id)
    marks = _marks_of(scope, golden)
    if expected is None:
        marks.filter(memory_id=memory.id).delete()
        return golden
    if marks.exclude(memory_id=memory.id).count() >= MAX_MARKS:
        raise Invalid({"memoryId": [f"A golden query has at most {MAX_MARKS} memories."]})
    GoldenMark.objects.update_or_create(
        instance=scope.instance, golden_id=golden.id, memory_id=memory.id, defaults={"expected": expected}
    )
    return golden


@transaction.atomic
def change_golden(scope: Scope, raw_id: object, draft: GoldenDraft) -> GoldenQuery:
    """Change the text, the user or the memories of a golden query."""
    scope.require_write()
    golden = find_golden(scope, raw_id)
    wait_for_turn(f"golden queries {scope.instance.id}")
    query = _normalised(draft.query)
    hash = _hash(query, draft.user_id)
    if _queries(scope).filter(query_hash=hash).exclude(id=golden.id).exists():
        raise Taken({"query": ["There is such a golden query already."]})
    _queries(scope).filter(id=golden.id).update(query=query, owner=draft.user_id, query_hash=hash)
    return save_golden(scope, draft)


def marks_for(scope: Scope, query: str, user_id: str) -> dict[UUID, bool]:
    """The memories that are marked for this query, and whether each is expected."""
    golden = _queries(scope).filter(query_hash=_hash(_normalised(query), user_id)).first()
    return {mark.memory_id: mark.expected for mark in _marks_of(scope, golden)} if golden else {}


def find_golden(scope: Scope, raw_id: object) -> GoldenQuery:
    """The only way from an outside id to a golden query."""
    return find_among(_queries(scope), raw_id, "There is no such golden query in this instance.")


def delete_golden(scope: Scope, raw_id: object) -> None:
    scope.require_write()
    golden = find_golden(scope, raw_id)
    _queries(scope).filter(id=golden.id).delete()


def _queries(scope: Scope) -> QuerySet[GoldenQuery]:
    return GoldenQuery.objects.filter(instance=scope.instance)


def _marks_of(scope: Scope, golden: GoldenQuery) -> QuerySet[GoldenMark]:
    return GoldenMark.objects.filter(instance=scope.instance, golden_id=golden.id)


def _get_or_create(scope: Scope, raw_query: str, user_id: str) -> GoldenQuery:
    """Inside the caller's transaction. The lock makes sure that two marks at the same time create one query."""
    query = _normalised(raw_query)
    hash = _hash(query, user_id)
    wait_for_turn(f"golden queries {scope.instance.id}")
    found = _queries(scope).filter(query_hash=hash).first()
    if found is None and _queries(scope).count() >= MAX_QUERIES:
        raise Invalid({"query": [f"An instance has at most {MAX_QUERIES:,} golden queries. Delete one first."]})
    return found or GoldenQuery.objects.create(
        instance=scope.instance, query=query, owner=user_id, query_hash=hash, created_at=timezone.now()
    )


def _normalised(query: str) -> str:
    return scrub(query.strip())[0]


def _hash(query: str, user_id: str) -> bytes:
    return sha256(f"{user_id}\n{query}".encode()).digest()


def evaluate(scope: Scope, changes: RecallSettings | None = None, *, at_most: int = MAX_QUERIES) -> list[Variant]:
    """Run the golden queries with the current settings, by meaning alone, by words alone, and with `changes` if any.

    Only memories that the query found and that fitted into the budget count, not injected ones. Must not be called in a
    transaction.
    """
    goldens = golden_queries(scope)[:at_most]
    ways: list[tuple[str, Mode, RecallSettings]] = [
        ("current", "hybrid", RecallSettings()),
        ("vector", "vector", RecallSettings()),
        ("keyword", "keyword", RecallSettings()),
    ]
    if changes is not None and changes.model_dump(exclude_none=True):
        ways.append(("changed", "hybrid", changes))
    return [_variant(scope, name, mode, settings, goldens) for name, mode, settings in ways]


def _variant(scope: Scope, name: str, mode: Mode, settings: RecallSettings, goldens: Sequence[Golden]) -> Variant:
    k = settings.limit or scope.instance.recall_limit
    return Variant(name, k, [_answer(scope, golden, mode, settings, k) for golden in goldens])


def _answer(scope: Scope, golden: Golden, mode: Mode, settings: RecallSettings, k: int) -> Answer:
    request = {"query": golden.row.query, "user_id": golden.row.owner, **settings.model_dump()}
    recalled = recall(scope, RecallRequest.model_validate(request), log=False, mode=mode)
    ranked = sorted((given.rank, given.memory.id) for given in recalled.memories if given.rank)
    found = [id for _, id in ranked] if recalled.mode in ("hybrid", "keyword") else []
    score = quality(found, golden.expected, k=k) if golden.expected else None
    return Answer(golden, found, score, recalled.mode, recalled.reason)
