"""Why a memory was recalled or not: each cause is named."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from accounts.access import actor_of_user
from instances.models import Instance
from memories import jobs
from memories.deletion import delete_memory
from memories.draft import MemoryChanges
from memories.embedding.backfill import embed_pending
from memories.forgetting import forget
from memories.models import Memory
from memories.recall.log import account_in, find_recall
from memories.recall.recalling import RecallRequest, recall
from memories.recall.why import Why, why
from memories.review.inbox import approve
from memories.store import change, restore
from memories.vocabulary import Review, Status
from memoryconsole.errors import NotFound
from memoryconsole.ids import uuid7
from memoryconsole.inputs import read
from tests.factories import make_instance, make_memories, make_memory, make_user, scope_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def bot() -> Instance:
    return make_instance("support-bot", embedder="offline")


def ask(instance: Instance, query: str, **request: Any) -> UUID:
    embed_pending(scope_of(instance))
    id = recall(scope_of(instance), read(RecallRequest, {"query": query, **request})).id
    assert id
    return id


def explain(instance: Instance, recall_id: UUID, memory: Memory) -> Why:
    scope = scope_of(instance)
    return why(scope, account_in(find_recall(scope, recall_id)), memory.id)


def reference(instance: Instance, content: str, **fields: Any) -> Memory:
    """A memory with a role that is only recalled if it is found."""
    return make_memory(instance, content, role="reference", **fields)


def test_found(bot: Instance) -> None:
    memory = reference(bot, "Alice lives in Bern")
    answer = explain(bot, ask(bot, "Where does Alice live?"), memory)
    assert (answer.given, answer.cause, answer.rank, answer.measured) == (True, "found", 1, "then")
    assert (answer.numbers.place, answer.numbers.vector_rank, answer.numbers.keyword_rank) == (1, 1, 1)
    assert answer.numbers.similarity
    assert answer.tokens


def test_injected(bot: Instance) -> None:
    reference(bot, "Alice lives in Bern")
    memory = make_memory(bot, "I am the operations team", role="identity")
    assert explain(bot, ask(bot, "Where does Alice live?"), memory).cause == "injected"


def test_recent(bot: Instance) -> None:
    memory = reference(bot, "Alice lives in Bern")
    answer = explain(bot, ask(bot, ""), memory)
    assert (answer.given, answer.cause) == (True, "recent")


def test_filter(bot: Instance) -> None:
    reference(bot, "Alice drinks tea", category="preference")
    memory = reference(bot, "Alice lives in Bern", category="fact", tags=["home"])
    answer = explain(bot, ask(bot, "Alice", filter={"tag": "home", "category": "preference"}), memory)
    assert (answer.given, answer.cause) == (False, "filter")
    assert answer.detail == "It does not match the filter category=preference."


@pytest.mark.parametrize("reader", ["", "bob"])
def test_visibility(bot: Instance, reader: str) -> None:
    memory = reference(bot, "Alice lives in Bern", visibility="private", owner="alice")
    answer = explain(bot, ask(bot, "Where does Alice live?", userId=reader), memory)
    assert answer.cause == "visibility"
    assert "private to “alice”" in answer.detail


def test_expired(bot: Instance) -> None:
    memory = reference(bot, "Alice lives in Bern")
    expire(memory)
    answer = explain(bot, ask(bot, "Where does Alice live?"), memory)
    assert ([cause.cause for cause in answer.causes], answer.memory) == (["expired"], None)


def expire(memory: Memory) -> None:
    Memory.objects.filter(pk=memory.pk).update(expires_at=timezone.now() - timedelta(microseconds=1))


@pytest.mark.parametrize("purge", [False, True])
def test_expired_since(bot: Instance, purge: bool) -> None:
    given, dropped = reference(bot, "Alice lives in Bern"), reference(bot, "The quarterly report is late")
    unseen = reference(bot, "Parking is free", category="event")
    id = ask(bot, "Where does Alice live?", filter={"category": "general"})
    unfiltered = ask(bot, "", limit=1, filter={"category": "general"})
    for memory in (given, dropped, unseen):
        expire(memory)
    if purge:
        jobs.purge_all_expired(0)
    answers = [explain(bot, id, memory) for memory in (given, dropped)]
    assert [answer.memory for answer in answers] == [None, None]
    causes = [[cause.cause for cause in answer.causes] for answer in answers]
    assert causes == [["found", "expired"], ["threshold", "expired"]]
    assert explain(bot, unfiltered, given).cause == "expired", "it was not looked at then, and nobody does now"
    answer = explain(bot, id, unseen)
    assert (answer.cause, answer.memory) == ("expired" if purge else "filter", None)


def test_superseded(bot: Instance) -> None:
    memory = reference(bot, "Alice lives in Bern", key="home")
    newer = reference(bot, "Alice lives in Basel", key="home", dedupe="create")
    id = ask(bot, "Where does Alice live?")
    assert explain(bot, id, memory).cause == "superseded"
    assert explain(bot, id, newer).given
    assert Memory.objects.get(pk=memory.pk).status == Status.SUPERSEDED


def test_unreviewed(bot: Instance) -> None:
    memory = reference(bot, "Alice lives in Bern")
    Memory.objects.filter(pk=memory.pk).update(review=Review.PENDING)
    assert explain(bot, ask(bot, "Where does Alice live?"), memory).cause == "unreviewed"


def test_threshold(bot: Instance) -> None:
    reference(bot, "Alice lives in Bern")
    memory = reference(bot, "The quarterly report is late")
    answer = explain(bot, ask(bot, "Where does Alice live?"), memory)
    assert (answer.cause, answer.measured) == ("threshold", "then")
    assert answer.numbers.similarity is not None
    assert answer.numbers.similarity < 0.15
    assert "is below 0.15" in answer.detail


def test_rank_among_what_was_considered(bot: Instance) -> None:
    memories = [reference(bot, f"Alice likes tea {n}") for n in range(12)]
    id = ask(bot, "Alice likes tea", mmrLambda=1)
    answers = [explain(bot, id, memory) for memory in memories]
    assert [answer.cause for answer in answers if not answer.given] == ["rank"] * 4
    assert all(answer.numbers.place and answer.numbers.score for answer in answers)


def test_rank_behind_what_was_considered(bot: Instance) -> None:
    memories = [reference(bot, f"Alice likes tea number {n}") for n in range(40)]
    id = ask(bot, "Alice likes tea", limit=2, mmrLambda=1)
    now = [answer for answer in (explain(bot, id, memory) for memory in memories) if answer.measured == "now"]
    assert len(now) == 16
    assert {answer.cause for answer in now} == {"rank"}
    assert all(answer.numbers.place and answer.numbers.place > 24 for answer in now)
    assert "the first 24 were considered" in now[0].detail


def test_far_behind_and_too_far_away(bot: Instance) -> None:
    memory = reference(bot, "Quarterly report")
    for n in range(30):
        reference(bot, f"Alice likes tea number {n}")
    answer = explain(bot, ask(bot, "Alice likes tea", limit=2), memory)
    assert (answer.cause, answer.measured) == ("threshold", "now")
    assert answer.numbers.similarity is not None


def test_not_among_the_newest(bot: Instance) -> None:
    memory = reference(bot, "The oldest")
    make_memories(bot, 3, role="reference")
    answer = explain(bot, ask(bot, "", limit=2), memory)
    assert answer.cause == "rank"
    assert "newest 2" in answer.detail


def test_decay(bot: Instance) -> None:
    old = reference(bot, "Alice likes green tea")
    for n in range(4):
        reference(bot, f"Alice likes green tea {'and cake ' * (n + 1)}")
    long_ago = timezone.now() - timedelta(days=400)
    Memory.objects.filter(pk=old.pk).update(updated_at=long_ago, last_seen_at=long_ago)
    answer = explain(bot, ask(bot, "Alice likes green tea", limit=1, mmrLambda=1), old)
    assert answer.cause == "decay"
    assert answer.detail == "Its age takes 40% off its score."
    assert answer.numbers.recency == 0.6


def test_mmr(bot: Instance) -> None:
    first = reference(bot, "Alice likes green tea very much")
    same = reference(bot, "Alice likes green tea very much!")
    other = reference(bot, "Green is the colour of tea leaves that Bob sells")
    id = ask(bot, "green tea", limit=2, mmrLambda=0.3)
    answers = {memory.id: explain(bot, id, memory) for memory in (first, same, other)}
    assert answers[other.id].given
    (left,) = [answer for answer in answers.values() if not answer.given]
    assert left.cause == "mmr"
    assert "100% of its words" in left.detail


def test_budget(bot: Instance) -> None:
    reference(bot, "Alice likes tea")
    memory = reference(bot, "Alice lives in Bern, and " + "she likes it there " * 30)
    answer = explain(bot, ask(bot, "Where does Alice live?", tokenBudget=100), memory)
    assert (answer.given, answer.cause) == (False, "budget")


def test_no_room_for_what_is_always_injected(bot: Instance) -> None:
    """It would have been given, near or far: only the budget decided."""
    reference(bot, "Alice lives in Bern")
    lessons = [make_memory(bot, f"Quarterly report {n} was " + "very late " * 20, role="lesson") for n in range(3)]
    id = ask(bot, "Where does Alice live?", tokenBudget=100)
    answers = [explain(bot, id, memory) for memory in lessons]
    assert not any(answer.given for answer in answers)
    assert [[cause.cause for cause in answer.causes] for answer in answers] == [["budget", "threshold"]] * 3
    assert all("is below 0.15" in answer.causes[1].detail for answer in answers)
    assert all(answer.numbers.similarity is not None for answer in answers)
    dropped = recall(scope_of(bot), RecallRequest(query="Where does Alice live?", token_budget=100)).dropped
    assert {one.memory.id: one.reason for one in dropped} == {memory.id: "budget" for memory in lessons}


def test_a_log_from_before_tells_one_cause(bot: Instance) -> None:
    reference(bot, "Alice lives in Bern")
    memory = make_memory(bot, "Quarterly report was " + "very late " * 30, role="lesson")
    id = ask(bot, "Where does Alice live?", tokenBudget=100)
    row = find_recall(scope_of(bot), id)
    del row.explanation["cut"]
    row.save()
    assert [cause.cause for cause in explain(bot, id, memory).causes] == ["budget"]


def test_injected_cap(bot: Instance) -> None:
    Instance.objects.update(recall_injected_cap=2)
    reference(bot, "Alice lives in Bern")
    memory, *_ = [make_memory(bot, f"Lesson number {n} is about reports", role="lesson") for n in range(3)]
    answer = explain(bot, ask(bot, "Where does Alice live?"), memory)
    assert [cause.cause for cause in answer.causes] == ["threshold", "injected_cap"]
    assert "only the first 2" in answer.causes[1].detail


def test_remembered_later(bot: Instance) -> None:
    id = ask(bot, "Where does Alice live?")
    assert explain(bot, id, reference(bot, "Alice lives in Bern")).cause == "later"


def test_what_could_be_recalled_only_afterwards(bot: Instance) -> None:
    other = reference(bot, "Bob lives in Basel")
    waits, old = reference(bot, "Alice lives in Bern"), reference(bot, "Alice lived in Bern", key="home")
    Memory.objects.filter(pk=waits.pk).update(review=Review.PENDING)
    reference(bot, "Alice has moved", key="home", dedupe="create")
    id = ask(bot, "Where does Alice live?")
    approve(scope_of(bot), waits.id)
    restore(scope_of(bot), old.id)
    embed_pending(scope_of(bot))
    for memory, done in ((waits, "approved"), (old, "taken into use again")):
        answer = explain(bot, id, memory)
        assert [cause.cause for cause in answer.causes] == ["changed", "changed"]
        assert answer.detail.startswith(f"It was {done} afterwards, at ")
        assert answer.causes[1].detail == f"Search finds it now, at place {answer.numbers.place}, but did not then."
        assert answer.measured == "now"
    assert explain(bot, id, other).given


def test_what_stood_behind_others(bot: Instance) -> None:
    memories = [reference(bot, f"Alice likes tea number {n}") for n in range(25)]
    id = ask(bot, "Alice likes tea", limit=2)
    behind = next(memory for memory in memories if explain(bot, id, memory).measured == "now")
    for memory in memories[:2] if behind not in memories[:2] else memories[-2:]:
        delete_memory(scope_of(bot), memory.id)
    answer = explain(bot, id, behind)
    assert [(cause.cause, cause.detail) for cause in answer.causes] == [
        ("changed", f"Search finds it now, at place {answer.numbers.place}, but did not then.")
    ]


def test_what_was_superseded_or_hidden_only_afterwards(bot: Instance) -> None:
    memory, private = reference(bot, "Parking is free", key="p"), reference(bot, "Alice parks", owner="alice")
    reference(bot, "Alice lives in Bern", category="fact")
    id = ask(bot, "Where does Alice live?", filter={"category": "fact"})
    reference(bot, "Parking costs 2 euros", key="p", dedupe="create")
    change(scope_of(bot), private.id, MemoryChanges(visibility="private"))
    answers = [explain(bot, id, one) for one in (memory, private)]
    causes = [[cause.cause for cause in answer.causes] for answer in answers]
    assert causes == [["superseded", "changed"], ["visibility", "changed"]]
    assert answers[0].causes[1].detail.startswith("It was superseded afterwards, at ")


def test_deleted(bot: Instance) -> None:
    given, ungiven = reference(bot, "Alice lives in Bern"), reference(bot, "Quarterly report", tags=["x"])
    id = ask(bot, "Where does Alice live?", filter={})
    before = ask(bot, "Where does Alice live?", filter={"category": "fact"})
    for memory in (given, ungiven):
        delete_memory(scope_of(bot), memory.id)
    answer = explain(bot, id, given)
    assert answer.given
    assert [cause.cause for cause in answer.causes] == ["found", "deleted"]
    assert answer.memory is None
    assert explain(bot, before, ungiven).cause == "deleted"


def test_what_went_with_a_person_is_deleted_too(bot: Instance) -> None:
    memory = reference(bot, "Alice lives in Bern", owner="alice")
    id = ask(bot, "Where does Alice live?")
    forget(scope_of(bot), "alice")
    answer = explain(bot, id, memory)
    assert [cause.cause for cause in answer.causes] == ["found", "deleted"]
    assert answer.memory is None


def test_switched_off(bot: Instance) -> None:
    memory = reference(bot, "Alice lives in Bern")
    Instance.objects.update(memory_enabled=False)
    scope = scope_of(bot)
    request = read(RecallRequest, {"query": "Alice"})
    answer = why(scope, recall(scope, request).account(request), memory.id)
    assert answer.cause == "off"


def test_what_is_not_there_is_not_explained(bot: Instance) -> None:
    id = ask(bot, "Alice")
    scope = scope_of(bot)
    theirs = make_memory(make_instance(), "Theirs")
    for wrong in (uuid7(), theirs.id, "nonsense"):
        with pytest.raises(NotFound):
            why(scope, account_in(find_recall(scope, id)), wrong)


def test_somebody_elses_private_memory_is_not_explained(bot: Instance) -> None:
    memory = reference(bot, "Alice lives in Bern", visibility="private", owner="alice")
    account = account_in(find_recall(scope_of(bot), ask(bot, "Alice", userId="alice")))
    bob = scope_of(bot, actor_of_user(make_user("bob", bot)))
    with pytest.raises(NotFound):
        why(bob, account, memory.id)
