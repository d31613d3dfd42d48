"""The running summary of a long conversation, which replaces its older messages in the working memory."""

from uuid import UUID

from django.db import transaction

from accounts.access import Scope
from conversations.models import Conversation, Message
from conversations.store import hold_conversation, messages_of
from conversations.working_memory import is_too_long, to_summarise
from memories.learning import follow_up, llm, prompts
from memories.learning.facts import read_summary
from memories.learning.messages import fitting, lines_of, source_of, spoken
from memories.models import Job

LONGEST = 4_000
AT_ONCE = 200


def run_summary(scope: Scope, job: Job) -> None:
    """Summarise until at most forty messages are not part of the summary."""
    while scope.instance.memory_enabled and job.conversation_id and (found := _next(scope, job.conversation_id)):
        _summarise(scope, job, *found)


def _next(scope: Scope, conversation_id: UUID) -> tuple[Conversation, list[Message]] | None:
    """Locks the conversation: whoever is adding messages right now has queued no other job if this one was waiting."""
    with transaction.atomic():
        conversation = hold_conversation(scope, conversation_id)
        if conversation is None or not is_too_long(conversation):
            return None
        positions = to_summarise(conversation)
        old = messages_of(scope, conversation).filter(position__gte=positions.start, position__lt=positions.stop)
        return conversation, fitting(old.order_by("position")[:AT_ONCE])


def _summarise(scope: Scope, job: Job, conversation: Conversation, messages: list[Message]) -> None:
    lines = lines_of(spoken(messages))
    summary, tokens = conversation.summary, 0
    if lines:
        prompt = prompts.summary(lines, zone=source_of(conversation).zone, so_far=conversation.summary)
        summary, tokens = llm.ask_twice(scope.instance, prompt, lambda text: read_summary(text, LONGEST))
    rows = Conversation.objects.filter(pk=conversation.pk, summarised_through=conversation.summarised_through)
    with transaction.atomic():
        if rows.update(summary=summary, summarised_through=messages[-1].position):
            job.result = {"messages": job.result.get("messages", 0) + len(messages)}
        job.done = job.total = job.result.get("messages", 0)
        job.tokens += tokens
        follow_up.note(job, "result", "done", "total", "tokens")
