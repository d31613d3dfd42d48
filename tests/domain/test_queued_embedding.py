"""When the worker is asked for vectors: once for many memories, and not for what needs none."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction
from procrastinate.contrib.django.models import ProcrastinateJob

from instances.models import Instance
from memories.changing_many import change_many
from memories.draft import MemoryDraft
from memories.store import save_many
from tests.domain.looking import in_another_connection
from tests.factories import correct, make_instance, make_memory, scope_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def bot() -> Instance:
    return make_instance("support-bot", embedder="offline")


def queued() -> list[dict[str, Any]]:
    return list(
        ProcrastinateJob.objects.filter(task_name="embed_memories", status="todo").values_list("args", flat=True)
    )


def test_many_memories_are_one_job(bot: Instance) -> None:
    make_memory(bot, "One")
    save_many(scope_of(bot), [MemoryDraft(content="Two"), MemoryDraft(content="Three")])
    assert queued() == [{"instance_id": str(bot.id)}]


def test_without_a_model_nothing_is_queued() -> None:
    make_memory(make_instance(), "One")
    assert queued() == []


def test_a_change_of_tags_asks_for_no_vectors(bot: Instance) -> None:
    memory = make_memory(bot, "One")
    finish_queued()
    change_many(scope_of(bot), [memory.id], {}, add_tags=["new"])
    assert queued() == []
    correct(memory, content="Two")
    assert len(queued()) == 1


@pytest.mark.django_db(transaction=True)
def test_a_job_that_began_too_early_is_followed_by_another(bot: Instance) -> None:
    """It was queued when the second was saved, but began and ended before that transaction did."""
    make_memory(bot, "One")
    with transaction.atomic():
        make_memory(bot, "Two")
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(in_another_connection, finish_queued).result()
        assert queued() == []
    assert queued() == [{"instance_id": str(bot.id)}]


def finish_queued() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE procrastinate_jobs SET status = 'succeeded'")
