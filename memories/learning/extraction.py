"""Extraction: learning what is worth remembering from the new messages of a conversation.

`extracted_through` on the conversation is the position of the last message that was read. It is updated in the
transaction that stores what was learnt, so a run that dies is simply repeated, and of two runs only one can store
anything.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from accounts.access import Scope
from conversations.models import Conversation, Message
from conversations.store import hold_conversation, messages_of
from instances.models import Instance
from memories.asking import Unavailable
from memories.draft import MemoryDraft
from memories.learning import follow_up, llm, prompts
from memories.learning.deduplication import Outcome, learn, take_turn, vectors_of
from memories.learning.facts import Fact, Facts, read_facts
from memories.learning.llm import Unreadable
from memories.learning.messages import LONGEST_WINDOW, Source, fitting, length, lines_of, source_of, spoken
from memories.models import Job, Memory
from memories.store import build
from memories.vocabulary import Review
from memoryconsole.errors import NotFound

# After this many jobs have failed at the same window, it is skipped.
MOST_FAILURES = 3
COUNTED = ("created", "updated", "flagged", "seen", "skipped", "messages")


@dataclass(frozen=True, slots=True)
class Window:
    """Messages in order, with the new ones last: those from `after` (exclusive) to `through` (inclusive)."""

    messages: Sequence[Message]
    after: int
    through: int

    @property
    def spoken(self) -> list[Message]:
        return spoken(self.messages)

    @property
    def has_news(self) -> bool:
        return any(message.position > self.after for message in self.spoken)


@dataclass(frozen=True, slots=True)
class Learnt:
    outcomes: Sequence[Outcome]
    skipped: int
    tokens: int


def run_extraction(scope: Scope, job: Job) -> None:
    """Learn from all new messages of the job's conversation, window by window."""
    while scope.instance.memory_enabled and job.conversation_id and (found := _next_window(scope, job.conversation_id)):
        conversation, window = found
        try:
            _extract(scope, job, conversation, window)
        except (Unreadable, Unavailable) as problem:
            _note_failure(scope, job, conversation, window, problem)
            raise


def try_extraction(scope: Scope, source: Source, messages: Sequence[Message]) -> Learnt:
    """What would be learnt from these messages: learns it in a transaction that is rolled back.

    Raises `NotFound` if their conversation is deleted meanwhile.
    """
    learner = Scope(scope.instance, follow_up.LEARNER)
    window = Window(messages[-scope.instance.extraction_messages :], after=0, through=0)
    if not window.has_news:
        return Learnt([], 0, 0)
    facts, tokens = _ask(learner.instance, source, window)
    memories = [_memory(learner, source, fact, window.spoken) for fact in facts.kept]
    vectors = vectors_of(learner, memories) if memories else []
    with transaction.atomic():
        # Locks in the same order as `_extract`.
        if memories:
            take_turn(learner)
        if source.conversation_id and not hold_conversation(learner, source.conversation_id):
            raise NotFound("This conversation has just been deleted.")
        outcomes = learn(learner, memories, vectors)
        transaction.set_rollback(True)
    return Learnt(outcomes, facts.skipped, tokens)


def _next_window(scope: Scope, conversation_id: UUID) -> tuple[Conversation, Window] | None:
    """Locks the conversation: whoever is adding messages right now has queued no other job if this one was waiting."""
    with transaction.atomic():
        conversation = hold_conversation(scope, conversation_id)
        if conversation is None or conversation.extracted_through >= conversation.message_count:
            return None
        return conversation, _window(scope, conversation)


def _window(scope: Scope, conversation: Conversation) -> Window:
    after, size = conversation.extracted_through, scope.instance.extraction_messages
    rows = messages_of(scope, conversation)
    new = fitting(rows.filter(position__gt=after).order_by("position")[:size])
    left = LONGEST_WINDOW - sum(length(message) for message in new)
    earlier = rows.filter(position__lte=after).order_by("-position")[: size - len(new)]
    context = fitting(earlier, left, least=0)[::-1]
    return Window([*context, *new], after, new[-1].position)


def _extract(scope: Scope, job: Job, conversation: Conversation, window: Window) -> None:
    source = source_of(conversation)
    facts, tokens = _ask(scope.instance, source, window) if window.has_news else (Facts([]), 0)
    memories = [_memory(scope, source, fact, window.spoken) for fact in facts.kept]
    vectors = vectors_of(scope, memories) if memories else []
    with transaction.atomic():
        # Lock the instance's turn before the conversation, so that adding messages never waits for other learning. Lock
        # the conversation before any memory, as forgetting a person does, so that nothing is learnt of them meanwhile.
        if memories:
            take_turn(scope)
        if not _move_on(conversation, window):
            return
        outcomes = learn(scope, memories, vectors)
        counts = Counter[str](outcome.counted for outcome in outcomes)
        counts["skipped"], counts["messages"] = facts.skipped, window.through - window.after
        _note(job, counts, tokens)


def _move_on(conversation: Conversation, window: Window) -> bool:
    """Return False if another run has done this window already, or the conversation is gone."""
    rows = Conversation.objects.filter(pk=conversation.pk, extracted_through=window.after)
    return bool(rows.update(extracted_through=window.through))


def _ask(instance: Instance, source: Source, window: Window) -> tuple[Facts, int]:
    """The facts, and how many tokens they cost."""
    lines = lines_of(window.spoken, after=window.after)
    limit, is_new = instance.extraction_limit, [line.is_new for line in lines]
    prompt = prompts.extraction(lines, zone=source.zone, limit=limit, user=source.owner)
    return llm.ask_twice(instance, prompt, lambda text: read_facts(text, is_new=is_new, zone=source.zone, limit=limit))


def _memory(scope: Scope, source: Source, fact: Fact, messages: Sequence[Message]) -> Memory:
    message = messages[fact.message] if fact.message is not None else None
    draft = MemoryDraft(
        content=fact.content,
        category=fact.category,
        role=fact.role,
        importance=fact.importance,
        confidence=fact.confidence,
        owner=source.owner,
        source="auto",
        source_conversation_id=source.conversation_id,
        source_message_ids=[message.id] if message else [],
        occurred_at=fact.occurred_at,
        channel=source.channel,
    )
    return build_learnt(scope, draft)


def build_learnt(scope: Scope, draft: MemoryDraft) -> Memory:
    """An unsaved memory that is learnt automatically: it waits for review unless it is important enough."""
    memory = build(scope, draft)[0]
    if memory.importance < scope.instance.auto_approve_importance:
        memory.review = Review.PENDING
    return memory


def _note(job: Job, counts: Counter[str], tokens: int) -> None:
    """Add the counts of a window to the job."""
    job.result = {name: job.result.get(name, 0) + counts[name] for name in COUNTED}
    job.done = job.total = job.result["messages"]
    job.tokens += tokens
    follow_up.note(job, "result", "done", "total", "tokens")


def _note_failure(scope: Scope, job: Job, conversation: Conversation, window: Window, problem: Exception) -> None:
    """Skip the window if its answers were unusable again and again, so that the rest of the conversation is learnt."""
    is_about_window = isinstance(problem, Unreadable) or getattr(problem, "code", "") == "refused"
    if not is_about_window:
        return
    jobs = Job.objects.filter(instance=scope.instance, conversation_id=conversation.id, kind=job.kind)
    failures = jobs.filter(state=Job.State.FAILED, payload__after=window.after).count() + 1
    job.payload = {"after": window.after, "through": window.through}
    job.tokens += problem.tokens if isinstance(problem, Unreadable) else 0
    with transaction.atomic():
        if failures >= MOST_FAILURES and _move_on(conversation, window):
            job.payload["passedOver"] = True
            follow_up.queue(scope, follow_up.EXTRACT, conversation.id)
        follow_up.note(job, "payload", "tokens")
