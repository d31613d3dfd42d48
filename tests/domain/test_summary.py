"""A summary belongs to one text, because recall uses it in place of that text."""

import pytest

from accounts.access import Scope
from instances.models import Instance
from memories.draft import MemoryChanges
from memories.models import AuditEntry, Memory, MemoryVersion
from memories.recall.recalling import RecallRequest, recall
from memories.review.inbox import approve
from memories.store import change, restore
from tests.domain.looking import find, texts
from tests.factories import make_memory, make_waiting

pytestmark = pytest.mark.django_db


@pytest.fixture
def memory(bot: Instance) -> Memory:
    return make_memory(bot, "Alice lives in Bern", summary="Alice: Bern", key="home")


def summaries(memory: Memory) -> list[str]:
    """All summaries, from the first version to the current one."""
    memory.refresh_from_db()
    kept = MemoryVersion.objects.filter(memory_id=memory.id).order_by("number")
    return [*kept.values_list("summary", flat=True), memory.summary]


def test_it_goes_with_the_text(scope: Scope, memory: Memory) -> None:
    assert change(scope, memory.id, MemoryChanges(content="Alice lives in Oslo")).summary == ""
    assert summaries(memory) == ["Alice: Bern", ""]
    assert AuditEntry.objects.latest("id").detail == {"fields": ["content", "summary"]}


@pytest.mark.parametrize("summary", ["Alice: Oslo", "Alice: Bern"])
def test_one_that_is_sent_along_is_of_the_new_text(scope: Scope, memory: Memory, summary: str) -> None:
    change(scope, memory.id, MemoryChanges(content="Alice lives in Oslo", summary=summary))
    assert summaries(memory) == ["Alice: Bern", summary]


def test_it_stays_while_the_text_stays(bot: Instance, scope: Scope, memory: Memory) -> None:
    change(scope, memory.id, MemoryChanges(content="Alice lives in Bern", importance=9))
    make_memory(bot, "Alice lives in Bern", key="home", pinned=True)
    assert summaries(memory) == ["Alice: Bern", "Alice: Bern"]


def test_saving_again_under_the_key(bot: Instance, memory: Memory) -> None:
    make_memory(bot, "Alice lives in Oslo", key="home")
    make_memory(bot, "Alice lives in Rome", key="home", summary="Alice: Rome")
    assert summaries(memory) == ["Alice: Bern", "", "Alice: Rome"]


def test_a_version_brings_its_own_back(scope: Scope, memory: Memory) -> None:
    change(scope, memory.id, MemoryChanges(content="Alice lives in Oslo"))
    restore(scope, memory.id, 1)
    assert summaries(memory) == ["Alice: Bern", "", "Alice: Bern"]
    restore(scope, memory.id, 2)
    assert summaries(memory) == ["Alice: Bern", "", "Alice: Bern", ""]


def test_a_text_corrected_in_review(bot: Instance, scope: Scope) -> None:
    memory = make_waiting(bot, "Alice lives in Bern", summary="Alice: Bern")
    approve(scope, memory.id, MemoryChanges(content="Alice lives in Oslo"))
    assert summaries(memory) == ["Alice: Bern", ""]


def test_neither_search_nor_recall_know_it_any_more(bot: Instance, scope: Scope) -> None:
    memory = make_memory(bot, "Alice lives in Bern. " * 40, summary="Alice: Switzerland", role="reference")
    wanted = RecallRequest(query="Where does Alice live?", token_budget=100)
    assert "Switzerland" in recall(scope, wanted).context
    change(scope, memory.id, MemoryChanges(content="Alice lives in Oslo. " * 40))
    assert "Switzerland" not in recall(scope, wanted).context
    assert texts(find(bot, "Switzerland", mode="keyword")) == []
