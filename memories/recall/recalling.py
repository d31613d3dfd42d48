"""Recall: what an assistant should know before it answers, as one block within a budget of tokens.

It always answers: by words and meaning, by words alone if there are no vectors, and with the newest memories if nothing
is found. `docs/recall.md` says what comes first if there is not enough room.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Literal
from uuid import UUID

from django.utils import timezone

from accounts.access import Scope
from conversations.listing import last_messages
from conversations.models import Conversation, Message, MessageRole
from conversations.store import find_conversation
from instances.models import Instance
from memories.filters import Filters
from memories.models import Memory, Procedure
from memories.procedures.matching import matches
from memories.recall.account import NO_ROOM, Account, DroppedLine, GivenLine, numbers_of
from memories.recall.arrangement import Arrangement
from memories.recall.injected import Injected, always_injected
from memories.recall.log import record
from memories.recall.prompt_block import Block, Placed, compose
from memories.recall.request import RecallMessage, RecallRequest, Settings, as_plain_words, question_in, settings_for
from memories.recall.selection import Candidate, Cut, RecallMode, Selection, select
from memories.search.hybrid import Mode

__all__ = ["Dropped", "Given", "RecallRequest", "Recalled", "recall"]

Why = Literal["found", "recent", "injected"]
LATEST_MESSAGES = 6
OFF = "Memory is switched off for this instance."


@dataclass(frozen=True, slots=True)
class Given:
    """A memory in the block. `why` says how it got there; `candidate` has the numbers if it was found."""

    memory: Memory
    placed: Placed
    why: Why
    candidate: Candidate | None = None
    rank: int | None = None
    """Its rank among the found memories by final score; the block itself is ordered by role."""

    @property
    def tokens(self) -> int:
        return self.placed.tokens

    @property
    def origin(self) -> Instance | None:
        """The instance that shares the memory, if it belongs to another one."""
        return self.candidate.origin if self.candidate else None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A memory that was considered and left out. `reason` is the cause as a code, `detail` as a sentence."""

    memory: Memory
    reason: str
    detail: str
    candidate: Candidate | None = None
    cut: Cut | None = None
    """Why the selection dropped it, if that was not decisive because its role is injected into every prompt."""


@dataclass(frozen=True, slots=True)
class Recalled:
    id: UUID | None
    """The id of its log entry; None if it is not logged."""
    query: str
    context: str
    memories: list[Given]
    dropped: list[Dropped]
    tokens: int
    mode: RecallMode
    reason: str
    settings: Settings
    at: datetime
    warnings: list[str] = field(default_factory=list)
    is_capped: bool = False
    has_summary: bool = False
    procedures: list[Procedure] = field(default_factory=list)

    def account(self, request: RecallRequest) -> Account:
        """What is needed to explain this recall, now or later."""
        return Account(
            query=self.query,
            user_id=request.user_id,
            mode=self.mode,
            reason=self.reason,
            tokens=self.tokens,
            at=self.at,
            settings=self.settings,
            filter=request.filter.narrowing() if request.filter else {},
            warnings=self.warnings,
            is_capped=self.is_capped,
            has_summary=self.has_summary,
            procedures=[procedure.id for procedure in self.procedures],
            given=[_given_line(given) for given in self.memories],
            dropped=[
                DroppedLine(one.memory.id, one.reason, one.detail, numbers_of(one.candidate), one.cut)
                for one in self.dropped
            ],
        )


def recall(scope: Scope, request: RecallRequest, *, log: bool = True, mode: Mode = "hybrid") -> Recalled:
    """Must not be called in a transaction, because it may ask the embedder."""
    scope = scope.reading_for(request.user_id)
    settings = settings_for(scope.instance, request)
    conversation = find_conversation(scope, request.conversation_id) if request.conversation_id else None
    question = _question(scope, request, conversation)
    if not scope.instance.memory_enabled:
        empty = compose([], settings.token_budget)
        return Recalled(None, question, empty.text, [], [], empty.tokens, "off", OFF, settings, timezone.now())
    filters = request.filter or Filters()
    selection = select(scope, as_plain_words(question), filters, settings, mode=mode)
    arrangement = Arrangement(
        found=selection.chosen,
        injected=always_injected(scope, filters, cap=settings.injected_cap),
        procedures=[match.procedure for match in matches(scope, as_plain_words(question))],
        conversation=_with_summary_for(conversation, request.user_id),
    )
    recalled = _assemble(question, selection, arrangement, settings)
    if not log:
        return recalled
    return replace(recalled, id=record(scope, recalled.account(request), request.conversation_id))


def _question(scope: Scope, request: RecallRequest, conversation: Conversation | None) -> str:
    if request.query:
        return request.query
    messages: Sequence[RecallMessage | Message] = request.messages
    if conversation and not messages:
        messages = last_messages(scope, conversation, LATEST_MESSAGES, roles=[MessageRole.USER])
    return question_in([message.content for message in messages if message.role == MessageRole.USER])


def _with_summary_for(conversation: Conversation | None, user_id: str) -> Conversation | None:
    """The conversation, if it has a summary and does not belong to another end user."""
    if conversation is None or not conversation.summary:
        return None
    is_theirs = not user_id or conversation.owner in ("", user_id)
    return conversation if is_theirs else None


def _assemble(question: str, selection: Selection, arrangement: Arrangement, settings: Settings) -> Recalled:
    block = compose(arrangement.turns(), settings.token_budget)
    injected, conversation = arrangement.injected, arrangement.conversation
    has_summary = conversation is not None and conversation.id in block.placed
    warnings = [injected.warning] if injected.warning else []
    if conversation and not has_summary:
        warnings.append("The summary of the conversation does not fit into the budget.")
    return Recalled(
        id=None,
        query=question,
        context=block.text,
        memories=list(_given(block, selection, injected)),
        dropped=list(_dropped(block, selection, injected)),
        tokens=block.tokens,
        mode=selection.mode,
        reason=selection.reason,
        settings=settings,
        at=timezone.now(),
        warnings=warnings,
        is_capped=injected.is_capped,
        has_summary=has_summary,
        procedures=[procedure for procedure in arrangement.procedures if procedure.id in block.placed],
    )


def _given(block: Block, selection: Selection, injected: Injected) -> Iterator[Given]:
    found = {candidate.memory.id: (rank, candidate) for rank, candidate in enumerate(selection.chosen, start=1)}
    always = {memory.id: memory for memory in injected.memories}
    by_search: Why = "recent" if selection.mode == "recency" else "found"
    for id, placed in block.placed.items():
        if id in found:
            rank, candidate = found[id]
            yield Given(candidate.memory, placed, by_search, candidate, rank)
        elif id in always:
            yield Given(always[id], placed, "injected")


def _dropped(block: Block, selection: Selection, injected: Injected) -> Iterator[Dropped]:
    """Each memory once: found ones that did not fit, injected ones that did not fit, then those the selection cut."""
    cuts = {one.memory.id: (one, cut) for one, cut in selection.cut}
    listed = set(block.placed)
    for one in chain(
        (Dropped(one.memory, "budget", NO_ROOM, one) for one in selection.chosen),
        (Dropped(memory, "budget", NO_ROOM, *cuts.get(memory.id, ())) for memory in injected.memories),
        (Dropped(one.memory, cut.cause, cut.detail, one) for one, cut in selection.cut),
    ):
        if one.memory.id not in listed:
            listed.add(one.memory.id)
            yield one


def _given_line(given: Given) -> GivenLine:
    passage = None
    if given.placed.form == "excerpt" and given.candidate:
        start = given.memory.content.find(given.candidate.passage)
        passage = (start, start + len(given.candidate.passage)) if start >= 0 else None
    numbers = numbers_of(given.candidate)
    return GivenLine(given.memory.id, given.why, given.placed.form, given.tokens, given.rank, numbers, passage)
