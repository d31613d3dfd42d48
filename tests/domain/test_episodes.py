"""Episodes: one event each time a conversation goes quiet."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from conversations.models import Conversation, Message
from conversations.store import MessageDraft, add_messages, close
from instances.models import Instance
from instances.store import InstanceChanges, change_instance
from memories import jobs
from memories.filters import Filters, matching
from memories.forgetting import forget
from memories.models import Chunk, Job, Memory
from memoryconsole.ids import uuid7_at
from memoryconsole.inputs import read
from tests.domain.looking import in_another_connection
from tests.factories import make_conversation, make_instance, scope_of
from tests.openai_server import OpenAIServer
from tests.working import waiting, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("openai")]


def episodes() -> list[Memory]:
    return list(Memory.objects.filter(role="historical").order_by("id"))


def rest(conversation: Conversation, minutes: int = 60) -> None:
    """Date the conversation and its messages back, so that it counts as quiet."""
    then = timezone.now() - timedelta(minutes=minutes)
    Conversation.objects.filter(pk=conversation.pk).update(last_message_at=then)
    for message in Message.objects.filter(conversation_id=conversation.id).order_by("position"):
        Message.objects.filter(pk=message.pk).update(id=uuid7_at(then), created_at=then)


def tell(instance: Instance) -> list[Memory]:
    work()
    jobs.tell_episodes(0)
    work()
    return episodes()


def test_a_conversation_that_has_gone_quiet_is_told(bot: Instance, openai: OpenAIServer) -> None:
    conversation = make_conversation(bot, "My parcel is lost", "I sent a new one", userId="dora", channel="email")
    assert tell(bot) == [], "it is not quiet yet"
    rest(conversation)
    (episode,) = tell(bot)
    assert (episode.category, episode.role, episode.source) == ("event", "historical", "auto")
    assert (episode.owner, episode.channel, episode.source_conversation_id) == ("dora", "email", conversation.id)
    assert episode.content == "2 messages, the last one: I sent a new one"
    assert episode.occurred_at == Message.objects.get(position=1).created_at
    job = Job.objects.get(kind="tell-episode")
    assert (job.state, job.result, job.tokens) == ("done", {"created": 1}, 15)


def test_time_range_filters_find_it(bot: Instance) -> None:
    rest(make_conversation(bot, "My parcel is lost", "I sent a new one"), minutes=60 * 24)
    (episode,) = tell(bot)
    yesterday = timezone.now() - timedelta(days=1, hours=1)
    filters = Filters(occurred_after=yesterday, occurred_before=yesterday + timedelta(hours=2))
    assert [memory.id for memory in matching(scope_of(bot), filters)] == [episode.id]


def test_once_for_each_quiet_time(bot: Instance, openai: OpenAIServer) -> None:
    conversation = make_conversation(bot, "My parcel is lost", "I sent a new one")
    rest(conversation)
    assert len(tell(bot)) == 1
    assert len(tell(bot)) == 1
    drafts = [read(MessageDraft, {"role": role, "content": role}) for role in ("user", "assistant")]
    add_messages(scope_of(bot), conversation.id, drafts)
    assert len(tell(bot)) == 1
    rest(conversation)
    assert [episode.content for episode in tell(bot)] == [
        "2 messages, the last one: I sent a new one",
        "2 messages, the last one: assistant",
    ]


def test_two_jobs_for_the_same_time_tell_it_once(bot: Instance) -> None:
    conversation = make_conversation(bot, "My parcel is lost", "I sent a new one")
    rest(conversation)
    work()
    jobs.tell_episodes(0)
    (queued,) = waiting()
    jobs.tell_episode(**queued.args)
    jobs.tell_episode(**queued.args)
    assert len(episodes()) == 1


def test_how_long_quiet_lasts_is_a_setting(bot: Instance) -> None:
    Instance.objects.filter(id=bot.id).update(quiet_minutes=120)
    rest(make_conversation(bot, "My parcel is lost", "I sent a new one"))
    assert tell(bot) == []


def test_closing_tells_it_at_once(bot: Instance) -> None:
    conversation = make_conversation(bot, "My parcel is lost", "I sent a new one")
    assert close(scope_of(bot), conversation.id).closed_at
    work()
    assert len(episodes()) == 1
    assert len(tell(bot)) == 1


def test_what_is_imported_has_not_gone_quiet_while_it_arrives(bot: Instance) -> None:
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    conversation = make_conversation(bot)
    drafts = [
        read(MessageDraft, {"role": role, "content": role, "createdAt": long_ago}) for role in ("user", "assistant")
    ]
    add_messages(scope_of(bot), conversation.id, drafts)
    Conversation.objects.filter(pk=conversation.pk).update(last_message_at=long_ago)
    assert tell(bot) == []


def test_no_story_no_memory(bot: Instance) -> None:
    rest(make_conversation(bot, "Hello?"))
    assert tell(bot) == []
    assert Conversation.objects.get().told_through == 1
    assert tell(bot) == []
    assert Job.objects.filter(kind="tell-episode").count() == 1


def test_an_answer_that_cannot_be_used_is_not_asked_for_every_minute(bot: Instance, openai: OpenAIServer) -> None:
    conversation = make_conversation(bot, "My parcel is lost", "I sent a new one")
    rest(conversation)
    work()
    openai.script("no", "no")
    assert tell(bot) == []
    assert tell(bot) == []
    assert [job.state for job in Job.objects.filter(kind="tell-episode")] == ["failed"]


def test_without_a_language_model_or_with_memory_off_nothing_is_told(bot: Instance, settings: Any) -> None:
    off = make_instance(memory_enabled=False)
    rest(make_conversation(off, "My parcel is lost", "I sent a new one"))
    assert tell(bot) == []
    settings.OPENAI_API_KEY = ""
    rest(make_conversation(bot, "My parcel is lost", "I sent a new one"))
    assert tell(bot) == []


@pytest.mark.django_db(transaction=True)
def test_whoever_is_forgotten_meanwhile_is_not_told_of(bot: Instance, openai: OpenAIServer) -> None:
    conversation = make_conversation(bot, "My parcel is lost", "I sent a new one", userId="dora")
    work()
    rest(conversation)
    jobs.tell_episodes(0)
    openai.meanwhile(lambda: in_another_connection(forget, scope_of(bot), "dora"))
    assert work() == 1
    assert (Memory.objects.count(), Job.objects.count()) == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_a_language_that_is_chosen_meanwhile_is_its_language(bot: Instance, openai: OpenAIServer) -> None:
    def speak_german() -> None:
        change_instance(scope_of(bot), InstanceChanges(language="german"))
        jobs.use_language_now(str(bot.id))
        ProcrastinateJob.objects.filter(task_name="use_language").delete()

    conversation = make_conversation(bot, "My parcel is lost", "I sent a new one")
    work()
    rest(conversation)
    jobs.tell_episodes(0)
    openai.meanwhile(lambda: in_another_connection(speak_german))
    work()
    (episode,) = episodes()
    assert Chunk.objects.get(memory_id=episode.id).language == "german"


def test_it_waits_for_review_like_any_other(bot: Instance) -> None:
    Instance.objects.filter(id=bot.id).update(auto_approve_importance=8)
    rest(make_conversation(bot, "My parcel is lost", "I sent a new one"))
    (episode,) = tell(bot)
    assert episode.review == "pending"
