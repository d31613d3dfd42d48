"""Retrying a failed job about a conversation."""

import pytest

from conversations.models import Conversation
from conversations.store import MessageDraft, add_messages
from instances.models import Instance
from memories.learning.follow_up import try_again
from memories.models import Job, Memory
from memoryconsole.inputs import read
from tests.factories import make_conversation, make_instance, scope_of
from tests.openai_server import OpenAIServer
from tests.working import put_off, waiting, what_the_worker_takes, work

pytestmark = pytest.mark.django_db


@pytest.fixture
def failed(bot: Instance, openai: OpenAIServer) -> Job:
    make_conversation(bot, "I live in Munich", "Noted")
    openai.script("I cannot do that", "Nor that")
    work()
    return Job.objects.get(state="failed")


def say_more(job: Job) -> Job:
    """A new message queues the same job again."""
    conversation = Conversation.objects.get(id=job.conversation_id)
    draft = read(MessageDraft, {"role": "assistant", "content": "Anything else?"})
    add_messages(scope_of(job.instance), conversation.id, [draft])
    return Job.objects.get(state="queued", conversation_id=conversation.id)


def test_a_new_job(bot: Instance, failed: Job) -> None:
    again = try_again(scope_of(bot), failed)
    assert again
    assert what_the_worker_takes() == {"instance_id": str(bot.id), "job_id": str(again.id)}


def test_one_that_waits_is_not_queued_twice(bot: Instance, failed: Job) -> None:
    say_more(failed)
    assert try_again(scope_of(bot), failed) is None
    assert len(waiting()) == 1
    work()
    assert Memory.objects.get().content == "I live in Munich"


def test_one_that_is_put_off_is_brought_forward_and_no_other(bot: Instance, failed: Job) -> None:
    make_conversation(bot, "I like tea", "Noted")
    make_conversation(make_instance("sales-bot"), "I like tea", "Noted")
    queued = say_more(failed)
    put_off(3)
    assert what_the_worker_takes() is None
    assert try_again(scope_of(bot), failed) is None
    assert what_the_worker_takes() == {"instance_id": str(bot.id), "job_id": str(queued.id)}
    assert what_the_worker_takes() is None, "nobody has asked for the others"
