"""Learning from conversations: what is worth remembering in the messages nobody has looked at yet.

`extracted_through` on the conversation says how far it has come. It moves on in the very transaction that stores what
was learnt, so a run that dies is simply done again, and of two runs only one can store anything.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import transaction
from django.utils import timezone

from accounts.access import Scope
from conversations.models import Conversation, Message, MessageRole
from conversations.store import hold_conversation, messages_of
from instances.models import Instance
from memories.asking import Unavailable
from memories.draft import MemoryDraft
from memories.learning import follow_up, llm, prompts
from memories.learning.deduplication import Outcome, learn, take_turn, vectors_of
from memories.learning.facts import Fact, Facts, read_facts
from memories.learning.llm import Unreadable
from memories.learning.prompts import Line
from memories.models import Job, Memory
from memories.recall.prompt_block import without_blocks
from memories.store import build
from memories.vocabulary import Review
from memoryconsole.errors import NotFound
from memoryconsole.ids import uuid7

# Together with what is asked about them, well within what any model reads.
LONGEST_MESSAGE = 24_000
LONGEST_WINDOW = 60_000
# After so many jobs failed at the same place, it goes on behind it.
MOST_FAILURES = 3
UTC = ZoneInfo("UTC")
COUNTED = ("created", "updated", "flagged", "seen", "skipped", "messages")
SPOKEN = (MessageRole.USER, MessageRole.ASSISTANT)


@dataclass(frozen=True, slots=True)
class Source:
    """Where messages come from, as far as their facts are concerned."""

    conversation_id: UUID | None = None
    owner: str = ""
    channel: str = ""
    zone: ZoneInfo = UTC


@dataclass(frozen=True, slots=True)
class Window:
    """Messages in order, the new ones last; `after` and `through` are where extraction was and will be."""

    messages: Sequence[Message]
    after: int
    through: int

    @property
    def said(self) -> list[Message]:
        return said(self.messages)

    @property
    def has_news(self) -> bool:
        return any(message.position > self.after for message in self.said)


@dataclass(frozen=True, slots=True)
class Learnt:
    outcomes: Sequence[Outcome]
    skipped: int
    tokens: int


def run_extraction(scope: Scope, job: Job) -> None:
    """Everything new in the job's conversation, window by window."""
    while scope.instance.memory_enabled and job.conversation_id and (found := _next_window(scope, job.conversation_id)):
        conversation, window = found
        try:
            _extract(scope, job, conversation, window)
        except (Unreadable, Unavailable) as problem:
            _note_failure(scope, job, conversation, window, problem)
            raise


def try_extraction(scope: Scope, source: Source, messages: Sequence[Message]) -> Learnt:
    """What would be learnt from these messages, found out by learning it and taking everything back.

    Raises `NotFound` when their conversation is deleted meanwhile.
    """
    learner = Scope(scope.instance, follow_up.LEARNER)
    window = Window(messages[-scope.instance.extraction_messages :], after=0, through=0)
    if not window.has_news:
        return Learnt([], 0, 0)
    facts, tokens = _ask(learner.instance, source, window)
    memories = [_memory(learner, source, fact, window.said) for fact in facts.kept]
    vectors = vectors_of(learner, memories) if memories else []
    with transaction.atomic():
        # In the same order as when it is meant.
        if memories:
            take_turn(learner)
        if source.conversation_id and not hold_conversation(learner, source.conversation_id):
            raise NotFound("This conversation has just been deleted.")
        outcomes = learn(learner, memories, vectors)
        transaction.set_rollback(True)
    return Learnt(outcomes, facts.skipped, tokens)


def spoken(text: str, instance: Instance) -> list[Message]:
    """A pasted text as messages: a line that begins with `assistant:` or `user:` starts the next one."""
    messages: list[Message] = []
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        role = name.strip().lower()
        if colon and role in SPOKEN:
            messages.append(_pasted(instance, role, rest.strip(), len(messages) + 1))
        elif messages:
            messages[-1].content += f"\n{line}"
        elif line.strip():
            messages.append(_pasted(instance, MessageRole.USER, line, 1))
    return messages


def source_of(conversation: Conversation) -> Source:
    zone = ZoneInfo(conversation.time_zone or "UTC")
    return Source(conversation.id, conversation.owner, conversation.channel, zone)


def said(messages: Sequence[Message]) -> list[Message]:
    """What people and the assistant said themselves: no system or tool output, and nothing recall put there."""
    return [message for message in messages if message.role in SPOKEN and without_blocks(message.content)]


def lines_of(messages: Sequence[Message], *, after: int = 0) -> list[Line]:
    return [
        Line(
            message.role,
            without_blocks(message.content)[:LONGEST_MESSAGE],
            message.created_at,
            message.position > after,
        )
        for message in messages
    ]


def fitting(messages: Iterable[Message], longest: int = LONGEST_WINDOW, *, least: int = 1) -> list[Message]:
    """As many of the first ones as a model can read at once."""
    found: list[Message] = []
    for message in messages:
        longest -= _length(message)
        if longest < 0 and len(found) >= least:
            break
        found.append(message)
    return found


def _pasted(instance: Instance, role: str, text: str, position: int) -> Message:
    return Message(instance=instance, id=uuid7(), role=role, content=text, position=position, created_at=timezone.now())


def _next_window(scope: Scope, conversation_id: UUID) -> tuple[Conversation, Window] | None:
    """Under the conversation's row: whoever is just adding messages may have found this job waiting."""
    with transaction.atomic():
        conversation = hold_conversation(scope, conversation_id)
        if conversation is None or conversation.extracted_through >= conversation.message_count:
            return None
        return conversation, _window(scope, conversation)


def _window(scope: Scope, conversation: Conversation) -> Window:
    after, size = conversation.extracted_through, scope.instance.extraction_messages
    rows = messages_of(scope, conversation)
    new = fitting(rows.filter(position__gt=after).order_by("position")[:size])
    left = LONGEST_WINDOW - sum(_length(message) for message in new)
    earlier = rows.filter(position__lte=after).order_by("-position")[: size - len(new)]
    context = fitting(earlier, left, least=0)[::-1]
    return Window([*context, *new], after, new[-1].position)


def _length(message: Message) -> int:
    return min(len(message.content), LONGEST_MESSAGE)


def _extract(scope: Scope, job: Job, conversation: Conversation, window: Window) -> None:
    source = source_of(conversation)
    facts, tokens = _ask(scope.instance, source, window) if window.has_news else (Facts([]), 0)
    memories = [_memory(scope, source, fact, window.said) for fact in facts.kept]
    vectors = vectors_of(scope, memories) if memories else []
    with transaction.atomic():
        # The turn before the conversation's row: adding messages never waits for somebody else's learning. And that
        # row before any memory, as forgetting a person has it: whoever is forgotten meanwhile is not learnt from.
        if memories:
            take_turn(scope)
        if not _move_on(conversation, window):
            return
        outcomes = learn(scope, memories, vectors)
        counts = Counter[str](outcome.counted for outcome in outcomes)
        counts["skipped"], counts["messages"] = facts.skipped, window.through - window.after
        _note(job, counts, tokens)


def _move_on(conversation: Conversation, window: Window) -> bool:
    """False when somebody else has been through this window already, or the conversation is gone."""
    rows = Conversation.objects.filter(pk=conversation.pk, extracted_through=window.after)
    return bool(rows.update(extracted_through=window.through))


def _ask(instance: Instance, source: Source, window: Window) -> tuple[Facts, int]:
    """The facts, and what they cost."""
    lines = lines_of(window.said, after=window.after)
    limit, is_new = instance.extraction_limit, [line.is_new for line in lines]
    prompt = prompts.extraction(lines, zone=source.zone, limit=limit, user=source.owner)
    return llm.ask_twice(instance, prompt, lambda text: read_facts(text, is_new=is_new, zone=source.zone, limit=limit))


def _memory(scope: Scope, source: Source, fact: Fact, said: Sequence[Message]) -> Memory:
    message = said[fact.message] if fact.message is not None else None
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
    return learnt(scope, draft)


def learnt(scope: Scope, draft: MemoryDraft) -> Memory:
    """A memory that nobody wrote by hand: it waits for review unless it is important enough."""
    memory = build(scope, draft)[0]
    if memory.importance < scope.instance.auto_approve_importance:
        memory.review = Review.PENDING
    return memory


def _note(job: Job, counts: Counter[str], tokens: int) -> None:
    """Added to what earlier windows came to."""
    job.result = {name: job.result.get(name, 0) + counts[name] for name in COUNTED}
    job.done = job.total = job.result["messages"]
    job.tokens += tokens
    follow_up.note(job, "result", "done", "total", "tokens")


def _note_failure(scope: Scope, job: Job, conversation: Conversation, window: Window, problem: Exception) -> None:
    """An answer that cannot be used over and over again must not keep the conversation from being learnt from."""
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
