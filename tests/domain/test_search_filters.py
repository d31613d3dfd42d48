"""Under every filter search finds exactly what looking at every memory finds: nothing is missing, nothing too much."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import sqrt
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from accounts.access import SHELL, actor_of_user
from conversations.models import Conversation
from instances.models import Instance
from memories.draft import MemoryDraft
from memories.embedding import offline
from memories.embedding.backfill import embed_pending
from memories.filters import Filters, matching
from memories.models import Embedding, Memory
from memories.search import planning, statement
from memories.search.hybrid import search
from memories.search.vector_index import CREATE, noted
from memories.search.vectors_sql import VectorIndex
from memories.store import save_many
from memories.vocabulary import Category, Role
from memoryconsole.inputs import read
from tests.domain.conftest import searched_as
from tests.domain.looking import MODES
from tests.factories import make_conversation, make_instance, make_user, scope_of

pytestmark = pytest.mark.django_db

WORDS = ("tea", "coffee", "milk", "bear", "garden", "window", "river", "hammer", "letter", "cloud")
DAY = datetime(2026, 1, 1, tzinfo=UTC)
OWNERS = ("", "alice", "bob")


@pytest.fixture(params=["small", "half", "middle", "large", "huge"], autouse=True)
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    searched_as(request.param, monkeypatch)
    return str(request.param)


def with_index(bot: Instance, size: str) -> Instance:
    """A huge instance has a vector index of its own, here of two thirds of it. The job builds it concurrently, which no
    transaction can."""
    if size == "huge":
        chunks = sorted(Embedding.objects.filter(instance=bot).values_list("chunk_id", flat=True))
        index = VectorIndex(bot.id, 1, chunks[len(chunks) * 2 // 3], dimensions=384, depth=400)
        with connection.cursor() as cursor:
            cursor.execute("DROP INDEX IF EXISTS index_of_test")
            cursor.execute(CREATE.replace("CONCURRENTLY", "").format(name="index_of_test", **index._asdict()))
        Instance.objects.filter(id=bot.id).update(**noted(index))
        bot.refresh_from_db()
    return bot


def random_draft(random: Random, n: int, conversations: list[Conversation]) -> dict[str, Any]:
    owner = random.choice(OWNERS)
    conversation = random.choice([None, *conversations])
    return {
        "content": f"{' '.join(random.sample(WORDS, 3))} {n}",
        "category": random.choice(Category.values),
        "role": random.choice(Role.values),
        "tags": random.sample(["red", "green", "blue"], random.randrange(3)),
        "source": random.choice(["crm", "import"]),
        "owner": owner,
        "visibility": random.choice(["private", "instance", "team"]) if owner else "instance",
        "pinned": random.random() < 0.3,
        "importance": random.randrange(1, 11),
        "occurredAt": (DAY + timedelta(days=random.randrange(10))).isoformat() if random.random() < 0.5 else None,
        "sourceConversationId": str(conversation.id) if conversation else None,
    }


def random_store(seed: int, number: int = 40) -> Instance:
    random = Random(seed)
    # In a team of its own: what others share is found as well.
    bot = make_instance(embedder="offline", team=f"team-{uuid4()}")
    conversations = [make_conversation(bot), make_conversation(bot)]
    moments = [DAY + timedelta(days=random.randrange(10), seconds=n) for n in range(number)]
    drafts = [read(MemoryDraft, random_draft(random, n, conversations)) for n in range(number)]
    save_many(scope_of(bot), drafts, written_at=moments)
    embed_pending(scope_of(bot))
    gone = [memory.id for memory in Memory.objects.filter(instance=bot) if random.random() < 0.1]
    Memory.objects.filter(id__in=gone).update(expires_at=DAY)
    pending = [memory.id for memory in Memory.objects.filter(instance=bot) if random.random() < 0.2]
    Memory.objects.filter(id__in=pending).update(embedding="pending")
    return bot


# Each filter of the contract, said in Python.
AFTER = DAY + timedelta(days=4)
KEEPS: dict[str, Callable[[Memory, Any], bool]] = {
    "category": lambda m, category: m.category == category,
    "role": lambda m, role: m.role == role,
    "tag": lambda m, tags: set(tags) <= set(m.tags),
    "source": lambda m, source: m.source == source,
    "owner": lambda m, owner: m.owner == owner,
    "visibility": lambda m, visibility: m.visibility == visibility,
    "pinned": lambda m, pinned: m.pinned == (pinned == "true"),
    "minImportance": lambda m, least: m.importance >= least,
    "createdAfter": lambda m, moment: m.created_at >= AFTER,
    "createdBefore": lambda m, moment: m.created_at < AFTER,
    "occurredAfter": lambda m, moment: bool(m.occurred_at and m.occurred_at >= AFTER),
    "occurredBefore": lambda m, moment: bool(m.occurred_at and m.occurred_at < AFTER),
    "embedding": lambda m, state: m.embedding == state,
}
FILTERS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "category": {"category": "fact"},
    "role": {"role": "lesson"},
    "tag": {"tag": ["red"]},
    "tags": {"tag": ["red", "blue"]},
    "source": {"source": "crm"},
    "owner": {"owner": "alice"},
    "visibility": {"visibility": "private"},
    "pinned": {"pinned": "true"},
    "not pinned": {"pinned": "false"},
    "minImportance": {"minImportance": 7},
    "createdAfter": {"createdAfter": AFTER.isoformat()},
    "createdBefore": {"createdBefore": AFTER.isoformat()},
    "occurredAfter": {"occurredAfter": AFTER.isoformat()},
    "occurredBefore": {"occurredBefore": AFTER.isoformat()},
    "embedding": {"embedding": "pending"},
    "several": {"category": "fact", "minImportance": 3, "pinned": "false"},
}


def keeps(sent: dict[str, Any], memory: Memory) -> bool:
    return all(KEEPS[name](memory, value) for name, value in sent.items())


def visible(bot: Instance, owner: str | None = None) -> list[Memory]:
    """What may be read, said once more in Python."""
    return [
        memory
        for memory in Memory.objects.filter(instance=bot)
        if memory.expires_at is None and (owner is None or memory.visibility != "private" or memory.owner == owner)
    ]


def cosine(one: list[float], other: list[float]) -> float:
    dot = sum(x * y for x, y in zip(one, other, strict=True))
    return dot / sqrt(sum(x * x for x in one) * sum(y * y for y in other))


def nearest(bot: Instance, text: str, memories: list[Memory]) -> list[tuple[Any, float]]:
    wanted = offline.embed(text)
    vectors = {
        row.memory_id: list(row.vector)
        for row in Embedding.objects.filter(instance=bot, memory_id__in=[memory.id for memory in memories])
    }
    return sorted(((id, cosine(wanted, vector)) for id, vector in vectors.items()), key=lambda pair: -pair[1])


@pytest.fixture
def store(size: str) -> Instance:
    return with_index(random_store(7, 60), size)


@pytest.mark.parametrize("name", FILTERS)
def test_each_filter(store: Instance, name: str) -> None:
    filters = read(Filters, FILTERS[name])
    kept = [memory for memory in visible(store) if keeps(FILTERS[name], memory)]
    assert kept
    assert {memory.id for memory in matching(scope_of(store), filters)} == {memory.id for memory in kept}

    by_vector = search(scope_of(store), "tea and milk", filters, mode="vector", limit=100)
    expected = nearest(store, "tea and milk", kept)
    assert by_vector.total == len(kept)
    assert [hit.found.similarity for hit in by_vector.hits] == pytest.approx([s for _, s in expected], abs=2e-3)
    assert {hit.memory.id for hit in by_vector.hits} == {id for id, _ in expected}

    by_word = search(scope_of(store), "tea milk", filters, mode="keyword", limit=100)
    said = {memory.id for memory in kept if {"tea", "milk"} & set(memory.content.split())}
    assert {hit.memory.id for hit in by_word.hits if hit.found.keyword_rank} == said
    for results in (by_word, search(scope_of(store), "tea milk", filters, limit=100)):
        assert {hit.memory.id for hit in results.hits} <= {memory.id for memory in kept}, "neighbours included"
        assert said <= {hit.memory.id for hit in results.hits}


def test_the_conversation_filter(store: Instance) -> None:
    for conversation in Conversation.objects.filter(instance=store):
        filters = read(Filters, {"conversationId": str(conversation.id)})
        kept = {memory.id for memory in visible(store) if memory.source_conversation_id == conversation.id}
        for mode in MODES:
            results = search(scope_of(store), "tea milk bear", filters, mode=mode, limit=100)
            assert {hit.memory.id for hit in results.hits} <= kept
        assert {hit.memory.id for hit in search(scope_of(store), "tea", filters, mode="vector", limit=100).hits} == kept


@pytest.mark.parametrize("name", FILTERS)
def test_each_filter_for_a_person_who_may_not_see_everything(store: Instance, name: str) -> None:
    filters = read(Filters, FILTERS[name])
    alice = scope_of(store, actor_of_user(make_user("alice", store)))
    kept = {memory.id for memory in visible(store, "alice") if keeps(FILTERS[name], memory)}
    for mode in MODES:
        found = {hit.memory.id for hit in search(alice, "tea milk", filters, mode=mode, limit=100).hits}
        assert found <= kept
        if mode == "vector":
            assert found == kept


@example(seed=170, names=["several", "pinned"], words=["tea"], who=None)
@given(
    seed=st.integers(0, 10_000),
    names=st.lists(st.sampled_from(sorted(FILTERS)), min_size=1, max_size=3),
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
    who=st.sampled_from([None, "alice", "bob"]),
)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_stores(size: str, seed: int, names: list[str], words: list[str], who: str | None) -> None:
    bot = with_index(random_store(seed, 25), size)
    sent: dict[str, Any] = {}
    for name in names:
        # A later choice of the same filter replaces the earlier one.
        sent |= FILTERS[name]
    filters = read(Filters, sent)
    kept = [memory for memory in visible(bot, who) if keeps(sent, memory)]
    user = make_user(who or "", bot, superadmin=who is None)
    try:
        scope = scope_of(bot, actor_of_user(user))
        text = " ".join(words)
        by_vector = search(scope, text, filters, mode="vector", limit=100).hits
        assert {hit.memory.id for hit in by_vector} == {memory.id for memory in kept}
        by_word = search(scope, text, filters, mode="keyword", limit=100).hits
        said = {memory.id for memory in kept if set(words) & set(memory.content.split())}
        assert {hit.memory.id for hit in by_word if hit.found.keyword_rank} == said
        assert {hit.memory.id for hit in by_word} <= {memory.id for memory in kept}
    finally:
        user.delete()


def test_vectors_are_ranked_exactly(store: Instance) -> None:
    for text in ("tea", "hammer and nails", "river cloud", "garden window letter"):
        hits = search(scope_of(store), text, Filters(), mode="vector", limit=20).hits
        expected = nearest(store, text, visible(store))[:20]
        assert [hit.found.similarity for hit in hits] == pytest.approx([s for _, s in expected], abs=2e-3)
        threshold = expected[-1][1] + 2e-3
        assert {id for id, s in expected if s > threshold} <= {hit.memory.id for hit in hits}


def test_all_forms_find_the_same(store: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("tea", "tea milk bear", '"tea" -milk', "hammer"):
        for mode in MODES:
            orders = []
            for size in ("small", "middle", "large"):
                searched_as(size, monkeypatch)
                hits = search(scope_of(store), text, Filters(), mode=mode, limit=20).hits
                orders.append([hit.memory.id for hit in hits])
            assert orders[0] == orders[1] == orders[2], (text, mode)


def test_the_shell_sees_everything(store: Instance) -> None:
    assert scope_of(store, SHELL).private_memories_of is None
    hits = search(scope_of(store), "tea", Filters(), mode="vector", limit=100).hits
    assert {hit.memory.id for hit in hits} == {memory.id for memory in visible(store)}


@pytest.mark.parametrize("near", [0, 4])
def test_what_filters_leave_far_from_the_query_is_found_too(
    store: Instance, near: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without anything that passes among the nearest."""
    monkeypatch.setattr(statement, "WIDE_NEAR", near)
    statement.statement.cache_clear()
    filters = Filters(category="fact")
    kept = {memory.id for memory in visible(store) if memory.category == "fact"}
    assert {hit.memory.id for hit in search(scope_of(store), "tea", filters, mode="vector", limit=100).hits} == kept
    statement.statement.cache_clear()


def test_a_few_private_memories_of_others_are_left_out(store: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "EXACT_UP_TO", 30)
    alice = scope_of(store, actor_of_user(make_user("alice", store)))
    kept = {memory.id for memory in visible(store, "alice")}
    assert len(kept) < len(visible(store))
    for mode in MODES:
        assert {hit.memory.id for hit in search(alice, "tea milk", Filters(), mode=mode, limit=100).hits} <= kept
    assert {hit.memory.id for hit in search(alice, "tea", Filters(), mode="vector", limit=100).hits} == kept
