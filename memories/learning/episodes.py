"""Episodes: what happened in a conversation, remembered as one event when it has gone quiet or was closed.

`told_through` on the conversation is the position of the last message that is part of an episode. It is updated in the
transaction that stores the episode, so there is exactly one for each time a conversation goes quiet.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from accounts.access import Scope
from conversations.models import Conversation, Message
from conversations.store import messages_of
from memories.draft import MemoryDraft
from memories.indexing import read_settings_again
from memories.learning import follow_up, llm, prompts
from memories.learning.extraction import build_learnt
from memories.learning.facts import read_summary
from memories.learning.messages import fitting, lines_of, source_of, spoken
from memories.models import MAX_SUMMARY, Job
from memories.store import insert
from memories.vocabulary import Category, Role
from memoryconsole.ids import first_id_at

IMPORTANCE = 4
# A greeting that nobody answered is no episode.
FEWEST_MESSAGES = 2
AT_ONCE = 200
QUEUED_AT_ONCE = 50


def tell_quiet_ones(scope: Scope) -> int:
    """Queue what is left to learn from each conversation that has gone quiet; return the number of episodes."""
    if not follow_up.may_learn(scope):
        return 0
    quiet = list(quiet_conversations(scope)[:QUEUED_AT_ONCE])
    with transaction.atomic():
        return sum(follow_up.finish(scope, conversation) is not None for conversation in quiet)


def quiet_conversations(scope: Scope) -> QuerySet[Conversation]:
    """Conversations that are closed, or whose last message is neither recent nor has just arrived from an import."""
    since = timezone.now() - timedelta(minutes=scope.instance.quiet_minutes)
    rows = Conversation.objects.filter(instance=scope.instance, told_through__lt=F("message_count"))
    messages = Message.objects.filter(instance=scope.instance, conversation_id=OuterRef("id"))
    arriving = messages.filter(position=OuterRef("message_count"), id__gte=first_id_at(since))
    jobs = Job.objects.filter(instance=scope.instance, conversation_id=OuterRef("id"), kind=follow_up.TELL)
    given_up = jobs.filter(state=Job.State.FAILED, total=OuterRef("message_count"))
    is_quiet = Q(closed_at__isnull=False) | (Q(last_message_at__lt=since) & ~Exists(arriving))
    return rows.filter(is_quiet & ~Exists(given_up)).order_by("last_message_at")


def run_episode(scope: Scope, job: Job) -> None:
    found = Conversation.objects.filter(instance=scope.instance, told_through__lt=F("message_count"))
    for conversation in found.filter(id__in=[job.conversation_id]) if scope.instance.memory_enabled else []:
        job.total = conversation.message_count
        follow_up.note(job, "total")
        _tell(scope, job, conversation, _new_messages(scope, conversation))


def _new_messages(scope: Scope, conversation: Conversation) -> list[Message]:
    """The new messages, or the latest of them if there are very many; the summary covers the others."""
    new = messages_of(scope, conversation).filter(
        position__gt=conversation.told_through, position__lte=conversation.message_count
    )
    return fitting(list(new.order_by("-position")[:AT_ONCE]))[::-1]


def _tell(scope: Scope, job: Job, conversation: Conversation, messages: list[Message]) -> None:
    said = spoken(messages)
    story = ""
    if len(said) >= FEWEST_MESSAGES:
        prompt = prompts.episode(lines_of(said), zone=source_of(conversation).zone, so_far=conversation.summary)
        story, job.tokens = llm.ask_twice(scope.instance, prompt, lambda text: read_summary(text, MAX_SUMMARY))
    rows = Conversation.objects.filter(pk=conversation.pk, told_through=conversation.told_through)
    with transaction.atomic():
        is_first = rows.update(told_through=conversation.message_count)
        if story and is_first:
            _remember(scope, conversation, story, said[0].created_at)
        job.result = {"created": int(bool(story and is_first))}
        job.done = job.total
        follow_up.note(job, "result", "done", "tokens")


def _remember(scope: Scope, conversation: Conversation, story: str, began: datetime) -> None:
    draft = MemoryDraft(
        content=story,
        category=Category.EVENT,
        role=Role.HISTORICAL,
        importance=IMPORTANCE,
        owner=conversation.owner,
        source="auto",
        source_conversation_id=conversation.id,
        occurred_at=began,
        channel=conversation.channel,
    )
    read_settings_again(scope)
    insert(scope, [build_learnt(scope, draft)])
