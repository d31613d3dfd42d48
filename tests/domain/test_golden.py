"""Golden queries: marking expected memories, and measuring recall on them."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from accounts.access import actor_of_user
from instances.models import Instance
from memories.deletion import delete_memory
from memories.embedding.backfill import embed_pending
from memories.models import GoldenMark, Memory
from memories.recall.golden import GoldenDraft, delete_golden, evaluate, find_golden, golden_queries, mark, save_golden
from memories.recall.quality import mean, quality
from memories.recall.request import RecallSettings
from memoryconsole.errors import Invalid, NotFound
from memoryconsole.ids import uuid7
from tests.factories import make_instance, make_memory, make_user, scope_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def bot() -> Instance:
    return make_instance("support-bot", embedder="offline")


def test_quality_of_a_ranked_list() -> None:
    a, b, c, d = (uuid7() for _ in range(4))
    perfect = quality([a, b], [a, b], k=8)
    assert (perfect.recall, perfect.reciprocal_rank, perfect.ndcg) == (1, 1, 1)
    half = quality([c, a], [a, b], k=8)
    assert (half.recall, half.reciprocal_rank) == (0.5, 0.5)
    assert half.ndcg == pytest.approx(0.6309 / 1.6309, abs=1e-4)
    assert quality([c, d, a], [a], k=2).recall == 0
    assert quality([], [a], k=8).ndcg == 0
    assert quality([a], [a, b, c], k=1).ndcg == 1
    averaged = mean([perfect, half])
    assert averaged
    assert averaged.recall == 0.75
    assert mean([]) is None


def test_marks_make_a_query_and_can_be_taken_back(bot: Instance) -> None:
    scope = scope_of(bot)
    tea, milk = make_memory(bot, "Tea"), make_memory(bot, "Milk")
    golden = mark(scope, query="What to drink?", user_id="", raw_memory_id=tea.id, expected=True)
    assert mark(scope, query=" What to drink? ", user_id="", raw_memory_id=milk.id, expected=False).id == golden.id
    (saved,) = golden_queries(scope)
    assert (saved.row.query, saved.expected, saved.unexpected) == ("What to drink?", [tea.id], [milk.id])
    mark(scope, query="What to drink?", user_id="", raw_memory_id=milk.id, expected=True)
    mark(scope, query="What to drink?", user_id="", raw_memory_id=tea.id, expected=None)
    (saved,) = golden_queries(scope)
    assert (saved.expected, saved.unexpected) == ([milk.id], [])
    mark(scope, query="What to drink?", user_id="alice", raw_memory_id=tea.id, expected=True)
    assert [one.row.owner for one in golden_queries(scope)] == ["", "alice"]


def test_saving_again_replaces_the_list(bot: Instance) -> None:
    scope = scope_of(bot)
    tea, milk = make_memory(bot, "Tea"), make_memory(bot, "Milk")
    save_golden(scope, GoldenDraft(query="Drink?", expected=[tea.id]))
    save_golden(scope, GoldenDraft(query="Drink?", expected=[milk.id]))
    assert [one.expected for one in golden_queries(scope)] == [[milk.id]]


def test_a_memory_is_expected_or_not(bot: Instance) -> None:
    tea = make_memory(bot, "Tea")
    with pytest.raises(Invalid):
        save_golden(scope_of(bot), GoldenDraft(query="Drink?", expected=[tea.id], unexpected=[tea.id]))


def test_memories_of_others_cannot_be_marked(bot: Instance) -> None:
    theirs = make_memory(make_instance(), "Theirs")
    private = make_memory(bot, "Private", visibility="private", owner="alice")
    bob = scope_of(bot, actor_of_user(make_user("bob", bot)))
    with pytest.raises(NotFound):
        mark(scope_of(bot), query="x", user_id="", raw_memory_id=theirs.id, expected=True)
    with pytest.raises(NotFound):
        save_golden(bob, GoldenDraft(query="x", expected=[private.id]))
    mark(scope_of(bot), query="x", user_id="alice", raw_memory_id=private.id, expected=True)
    assert [one.expected for one in golden_queries(bob)] == [[]]


def test_deleting_a_memory_takes_it_off_the_lists(bot: Instance) -> None:
    scope = scope_of(bot)
    tea, milk = make_memory(bot, "Tea"), make_memory(bot, "Milk")
    save_golden(scope, GoldenDraft(query="Drink?", expected=[tea.id, milk.id]))
    delete_memory(scope, tea.id)
    assert [one.expected for one in golden_queries(scope)] == [[milk.id]]


def test_deleting_a_query(bot: Instance) -> None:
    scope = scope_of(bot)
    golden = save_golden(scope, GoldenDraft(query="Drink?", expected=[make_memory(bot, "Tea").id]))
    with pytest.raises(NotFound):
        find_golden(scope_of(make_instance()), golden.id)
    delete_golden(scope, golden.id)
    assert golden_queries(scope) == []
    assert GoldenMark.objects.count() == 0
    assert Memory.objects.count() == 1


def test_every_way_is_measured(bot: Instance) -> None:
    scope = scope_of(bot)
    tea = make_memory(bot, "Alice likes tea", role="reference")
    report = make_memory(bot, "The quarterly report", role="reference")
    embed_pending(scope)
    save_golden(scope, GoldenDraft(query="Alice likes tea?", expected=[tea.id]))
    save_golden(scope, GoldenDraft(query="Where is the quarterly report?", expected=[report.id]))
    save_golden(scope, GoldenDraft(query="Nothing is expected", unexpected=[tea.id]))
    variants = {one.name: one for one in evaluate(scope_of(bot), RecallSettings(threshold=1.0))}
    assert list(variants) == ["current", "vector", "keyword", "changed"]
    for name in ("current", "vector", "keyword"):
        reached = variants[name].quality
        assert reached
        assert (reached.recall, reached.reciprocal_rank, reached.ndcg) == (1, 1, 1), name
    assert [answer.quality is None for answer in variants["current"].answers] == [False, False, True]


def test_a_changed_setting_can_be_worse(bot: Instance) -> None:
    scope = scope_of(bot)
    memories = [make_memory(bot, f"Alice likes tea number {n}", role="reference") for n in range(4)]
    embed_pending(scope)
    save_golden(scope, GoldenDraft(query="Alice likes tea", expected=[memory.id for memory in memories]))
    current, *_, changed = evaluate(scope_of(bot), RecallSettings(limit=2))
    assert (current.k, changed.k) == (8, 2)
    assert current.quality
    assert changed.quality
    assert (current.quality.recall, changed.quality.recall) == (1, 0.5)
    assert len(changed.answers[0].missed) == 2


def test_without_vectors_meaning_alone_finds_nothing(bot: Instance) -> None:
    tea = make_memory(bot, "Alice likes tea", role="reference")
    save_golden(scope_of(bot), GoldenDraft(query="Alice likes tea", expected=[tea.id]))
    variants = {one.name: one.quality for one in evaluate(scope_of(bot))}
    assert variants["vector"]
    assert variants["keyword"]
    assert (variants["vector"].recall, variants["keyword"].recall) == (0, 1)


@pytest.mark.django_db(transaction=True)
def test_marks_of_a_new_query_in_the_same_moment_are_marks_of_one(bot: Instance) -> None:
    memories = [make_memory(bot) for _ in range(8)]
    start = Barrier(len(memories))

    def say(memory: Memory) -> None:
        start.wait(30)
        try:
            mark(scope_of(bot), query="What is it?", user_id="", raw_memory_id=memory.id, expected=True)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(memories)) as threads:
        list(threads.map(say, memories))
    (golden,) = golden_queries(scope_of(bot))
    assert set(golden.expected) == {memory.id for memory in memories}
