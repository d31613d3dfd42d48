import time
from typing import Any

import pytest
from django.db.models import F
from pytest_django.fixtures import DjangoAssertNumQueries

from accounts.access import SHELL, actor_of_user
from conversations.models import Conversation, Message
from instances.models import Instance
from memories.demo import load_demo, remove_demo
from memories.filters import Filters
from memories.listing import count, list_from
from memories.models import Memory, MemoryVersion
from memories.vocabulary import Category, Role
from memoryconsole.errors import NotAllowed
from memoryconsole.ids import time_of
from tests.factories import make_instance, make_memory, make_user, scope_of
from tests.working import waiting

pytestmark = pytest.mark.django_db


def test_two_instances_with_conversations_and_about_forty_memories():
    load_demo(SHELL)
    instances = Instance.objects.order_by("slug")
    assert [(instance.slug, instance.is_demo) for instance in instances] == [("sales-bot", True), ("support-bot", True)]
    assert {(str(instance.team), str(instance.team.organisation)) for instance in instances} == {
        ("Customer team", "Example")
    }
    totals = {instance.slug: count(scope_of(instance), Filters()).all for instance in instances}
    assert totals == {"sales-bot": 19, "support-bot": 22}
    for instance in instances:
        conversations = Conversation.objects.filter(instance=instance)
        assert 3 <= conversations.count() <= 5
        assert all(conversation.message_count >= 3 for conversation in conversations)
    assert set(Conversation.objects.values_list("channel", flat=True)) == {"chat", "email", "phone"}


def test_there_is_something_of_everything():
    load_demo(SHELL)
    memories = Memory.objects.all()
    assert set(memories.values_list("category", flat=True)) == set(Category.values)
    assert set(memories.values_list("role", flat=True)) == set(Role.values)
    assert memories.filter(pinned=True).exists()
    assert memories.exclude(key="").exists()
    assert memories.filter(occurred_at__isnull=False).exists()
    assert memories.filter(source_conversation_id__isnull=False).exists()
    assert memories.filter(content__contains="\n\n").exists()
    assert memories.filter(content__contains="Antworten immer auf Deutsch").exists()
    assert memories.filter(content__contains="取り込み").exists()
    assert MemoryVersion.objects.filter(instance__slug="support-bot").count() == 1


def test_the_list_looks_lived_in():
    load_demo(SHELL)
    memories = list(Memory.objects.all())
    days = {memory.created_at.date() for memory in memories}
    assert len(days) > 15
    assert all(abs((time_of(memory.id) - memory.created_at).total_seconds()) < 0.01 for memory in memories)
    support = scope_of(Instance.objects.get(slug="support-bot"))
    created = [memory.created_at for memory in list_from(support, Filters(), limit=100).memories]
    assert created == sorted(created, reverse=True)


def test_conversations_ended_when_their_last_message_was_written():
    load_demo(SHELL)
    for conversation in Conversation.objects.all():
        messages = Message.objects.filter(instance=conversation.instance_id, conversation_id=conversation.id)
        times = list(messages.order_by("position").values_list("created_at", flat=True))
        assert (conversation.created_at, conversation.last_message_at) == (times[0], times[-1])
        assert times == sorted(times)


def test_loading_again_changes_nothing():
    load_demo(SHELL)
    before = set(Memory.objects.values_list("id", flat=True))
    load_demo(SHELL)
    assert set(Memory.objects.values_list("id", flat=True)) == before


def test_it_keeps_away_when_one_of_the_names_is_taken():
    make_instance("sales-bot")
    load_demo(SHELL)
    assert list(Instance.objects.values_list("slug", flat=True)) == ["sales-bot"]


def test_removing_takes_the_demo_and_nothing_else():
    mine = make_instance("my-bot")
    kept = make_memory(mine, "Keep me")
    load_demo(SHELL)
    make_memory(Instance.objects.get(slug="support-bot"), "Added by somebody")
    assert remove_demo(SHELL) == {"instances": 2, "memories": 42, "conversations": 9}
    assert list(Instance.objects.all()) == [mine]
    assert list(Memory.objects.all()) == [kept]
    assert not Conversation.objects.exists()
    assert not Message.objects.exists()
    assert remove_demo(SHELL) == {"instances": 0, "memories": 0, "conversations": 0}


def test_an_instance_that_only_has_the_name_is_not_removed():
    make_instance("support-bot")
    remove_demo(SHELL)
    assert Instance.objects.filter(slug="support-bot").exists()


def test_only_superadmins_may_load_and_remove_it():
    load_demo(SHELL)
    member = actor_of_user(make_user("alice", *Instance.objects.all()))
    with pytest.raises(NotAllowed):
        remove_demo(member)
    assert Instance.objects.count() == 2
    remove_demo(SHELL)
    with pytest.raises(NotAllowed):
        load_demo(member)
    assert not Instance.objects.exists()


def test_loading_is_quick(django_assert_max_num_queries: DjangoAssertNumQueries):
    started = time.process_time()
    with django_assert_max_num_queries(200):
        load_demo(SHELL)
    assert time.process_time() - started < 1


def test_nothing_is_learnt_from_it(settings: Any) -> None:
    settings.OPENAI_API_KEY = "sk-good"
    load_demo(SHELL)
    assert waiting() == []
    assert not Conversation.objects.exclude(
        extracted_through=F("message_count"), told_through=F("message_count")
    ).exists()
