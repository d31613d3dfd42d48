"""Recall: what an assistant should be told before it answers, as one block within a budget of tokens.

Always answers: by words and meaning, by words alone when vectors cannot be had, with the newest memories when nothing
is found. `docs/recall.md` says what goes first when there is not enough room.
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
from memories.procedures.store import procedures_for
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
    """A memory in the block. `why` says what brought it there; `candidate` has the numbers if it was found."""

    memory: Memory
    placed: Placed
    why: Why
    candidate: Candidate | None = None
    rank: int | None = None
    """Its place among what was found, after everything was weighed; the block itself is ordered by role."""

    @property
    def tokens(self) -> int:
        return self.placed.tokens

    @property
    def origin(self) -> Instance | None:
        """The instance that shares it, when it is not this one's own."""
        return self.candidate.origin if self.candidate else None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A memory that was considered and is not in the block: `reason` is a cause in a word, `detail` a sentence."""

    memory: Memory
    reason: str
    detail: str
    candidate: Candidate | None = None
    cut: Cut | None = None
    """What search had against it, when that did not decide because its role puts it into every prompt."""


@dataclass(frozen=True, slots=True)
class Recalled:
    id: UUID | None
    """Of its entry in the log; None when none is kept."""
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
        """What is needed to explain it, now or later."""
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
    """Not for transactions: the embedder may be asked."""
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
        procedures=procedures_for(scope, as_plain_words(question)),
        conversation=_summarised(conversation, request.user_id),
    )
    recalled = _put_together(question, selection, arrangement, settings)
    if not log:
        return recalled
    return replace(recalled, id=record(scope, recalled.account(request), request.conversation_id))


def _question(scope: Scope, request: RecallRequest, conversation: Conversation | None) -> str:
    if request.query:
        return request.query
    said: Sequence[RecallMessage | Message] = request.messages
    if conversation and not said:
        said = last_messages(scope, conversation, LATEST_MESSAGES)
    return question_in([message.content for message in said if message.role == MessageRole.USER])


def _summarised(conversation: Conversation | None, user_id: str) -> Conversation | None:
    """What was said to somebody else is not told."""
    if conversation is None or not conversation.summary:
        return None
    is_theirs = not user_id or conversation.owner in ("", user_id)
    return conversation if is_theirs else None


def _put_together(question: str, selection: Selection, arrangement: Arrangement, settings: Settings) -> Recalled:
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
    """Each memory once: what was found and did not fit, what is injected and did not fit, then what was passed over."""
    cuts = {one.memory.id: (one, cut) for one, cut in selection.cut}
    told = set(block.placed)
    for one in chain(
        (Dropped(one.memory, "budget", NO_ROOM, one) for one in selection.chosen),
        (Dropped(memory, "budget", NO_ROOM, *cuts.get(memory.id, ())) for memory in injected.memories),
        (Dropped(one.memory, cut.cause, cut.detail, one) for one, cut in selection.cut),
    ):
        if one.memory.id not in told:
            told.add(one.memory.id)
            yield one


def _given_line(given: Given) -> GivenLine:
    passage = None
    if given.placed.form == "excerpt" and given.candidate:
        start = given.memory.content.find(given.candidate.passage)
        passage = (start, start + len(given.candidate.passage)) if start >= 0 else None
    numbers = numbers_of(given.candidate)
    return GivenLine(given.memory.id, given.why, given.placed.form, given.tokens, given.rank, numbers, passage)
