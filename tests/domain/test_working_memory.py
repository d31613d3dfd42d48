"""Working memory: the last messages in full, and a running summary of those before."""

from typing import Any

import pytest

from conversations.models import Conversation
from conversations.store import MessageDraft, add_messages, find_conversation
from conversations.working_memory import Context, context_of
from instances.models import Instance
from memories.forgetting import forget
from memories.models import Job
from memoryconsole.inputs import read
from tests.domain.looking import in_another_connection
from tests.factories import make_conversation, scope_of
from tests.openai_server import OpenAIServer
from tests.working import waiting, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("openai")]


def talk(instance: Instance, number: int) -> Conversation:
    return make_conversation(instance, *(f"Message {n}" for n in range(1, number + 1)))


def go_on(conversation: Conversation, number: int) -> None:
    start = find_conversation(scope_of(conversation.instance), conversation.id).message_count
    drafts = [read(MessageDraft, {"role": "user", "content": f"Message {start + n}"}) for n in range(1, number + 1)]
    add_messages(scope_of(conversation.instance), conversation.id, drafts)


def context(conversation: Conversation) -> Context:
    scope = scope_of(conversation.instance)
    return context_of(scope, find_conversation(scope, conversation.id))


def positions(found: Context) -> tuple[int, int]:
    return found.messages[0].position, found.messages[-1].position


def test_without_a_language_model_the_plain_window(bot: Instance, settings: Any) -> None:
    settings.OPENAI_API_KEY = ""
    conversation = talk(bot, 60)
    assert waiting() == []
    found = context(conversation)
    assert (found.summary, found.summarised_through, positions(found)) == ("", 0, (41, 60))


def test_a_short_conversation_is_all_there(bot: Instance) -> None:
    assert positions(context(talk(bot, 3))) == (1, 3)
    assert context(talk(bot, 0)).messages == []


def test_past_forty_the_older_ones_are_summarised(bot: Instance, openai: OpenAIServer) -> None:
    conversation = talk(bot, 40)
    assert [job.task_name for job in waiting()] == ["extract_memories"]
    go_on(conversation, 1)
    assert [job.task_name for job in waiting()] == ["extract_memories", "summarise_conversation"]
    work()
    found = context(conversation)
    assert (found.summary, found.summarised_through) == ("21 messages, the last one: Message 21", 21)
    assert positions(found) == (22, 41)
    job = Job.objects.get(kind="summarise-conversation")
    assert (job.state, job.result, job.tokens) == ("done", {"messages": 21}, 15)


def test_the_summary_rolls_on_and_there_is_never_a_gap(bot: Instance, openai: OpenAIServer) -> None:
    conversation = talk(bot, 41)
    work()
    go_on(conversation, 20)
    assert work() == 0
    assert positions(context(conversation)) == (22, 61)
    go_on(conversation, 1)
    work()
    found = context(conversation)
    assert (found.summary, positions(found)) == ("21 messages, the last one: Message 42", (43, 62))
    asked = [body["messages"][1]["content"] for body in openai.chats() if "running summary" in str(body["messages"][0])]
    assert "21 messages, the last one: Message 21" in asked[1], "it goes on from the summary so far"


def test_a_burst_is_one_job_and_a_failure_harms_nobody(bot: Instance, openai: OpenAIServer) -> None:
    conversation = talk(bot, 40)
    go_on(conversation, 5)
    go_on(conversation, 5)
    work_on_extraction = {"memories": []}
    openai.script(*[work_on_extraction] * 4, "no", "no")
    work()
    job = Job.objects.get(kind="summarise-conversation")
    assert (job.state, "unusable" in job.error) == ("failed", True)
    assert positions(context(conversation)) == (31, 50)
    go_on(conversation, 1)
    work()
    assert positions(context(conversation)) == (32, 51)


@pytest.mark.django_db(transaction=True)
def test_whoever_is_forgotten_meanwhile_is_not_summed_up(bot: Instance, openai: OpenAIServer) -> None:
    conversation = make_conversation(bot, *(f"Message {n}" for n in range(41)), userId="dora")
    work()
    go_on(conversation, 21)
    openai.meanwhile(lambda: in_another_connection(forget, scope_of(bot), "dora"))
    assert work() == 1
    assert (Conversation.objects.count(), Job.objects.count()) == (0, 0)


def test_what_nobody_said_is_not_summarised(bot: Instance, openai: OpenAIServer) -> None:
    conversation = make_conversation(bot)
    drafts = [read(MessageDraft, {"role": "tool", "content": f"Output {n}"}) for n in range(50)]
    add_messages(scope_of(bot), conversation.id, drafts)
    work()
    assert openai.chats() == []
    assert positions(context(conversation)) == (31, 50)
