"""Learning memories that may be known already: created, updated, flagged or seen again."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections, transaction

from instances.models import Instance
from memories.draft import MemoryChanges, MemoryDraft
from memories.embedding.backfill import embed_pending
from memories.learning import deduplication
from memories.learning.deduplication import Outcome, learn, vectors_of
from memories.models import AuditEntry, Chunk, Embedding, Memory, MemoryVersion
from memories.review.inbox import reject
from memories.review.merging import merge
from memories.store import build, change
from memories.vocabulary import Review
from memoryconsole.inputs import read
from tests.domain.looking import find, while_writing
from tests.factories import make_instance, make_memory, scope_of
from tests.openai_server import OpenAIServer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("openai")]

TEA = "Alice Miller prefers strong black tea with fresh lemon every single morning"


def learn_all(bot: Instance, *contents: str, review: Review = Review.APPROVED, **fields: Any) -> list[Outcome]:
    scope = scope_of(bot)
    drafts = [read(MemoryDraft, {"content": content, "source": "auto", **fields}) for content in contents]
    memories = [build(scope, draft)[0] for draft in drafts]
    for memory in memories:
        memory.review = review
    vectors = vectors_of(scope, memories)
    with transaction.atomic():
        return learn(scope, memories, vectors)


def events(outcomes: list[Outcome]) -> list[str]:
    return [outcome.event for outcome in outcomes]


def test_something_new_is_stored_with_its_vector_at_once(bot: Instance) -> None:
    (outcome,) = learn_all(bot, TEA)
    memory = Memory.objects.get()
    assert (outcome.event, memory.content, memory.embedding, memory.source) == ("created", TEA, "ready", "auto")
    assert Embedding.objects.filter(instance=bot, memory_id=memory.id, live=True).count() == 1


def test_other_case_spaces_and_full_stop_are_the_same_text(bot: Instance) -> None:
    memory = make_memory(bot, TEA)
    embed_pending(scope_of(bot))
    assert events(learn_all(bot, TEA, TEA.lower(), f"  {TEA}. ")) == ["seen"] * 3
    again = Memory.objects.get()
    assert again.last_seen_at > memory.last_seen_at
    assert (again.updated_at, again.content) == (memory.updated_at, TEA)
    assert not MemoryVersion.objects.exists()


def test_other_words_take_the_place_of_the_old_ones_and_leave_a_version(bot: Instance) -> None:
    memory = make_memory(bot, TEA, importance=7, tags=["drink"], pinned=True, summary="Tea")
    embed_pending(scope_of(bot))
    better = f"{TEA} now"
    (outcome,) = learn_all(bot, better, importance=3)
    assert outcome.event == "updated"
    assert outcome.known is not None
    assert outcome.known.content == TEA
    changed = Memory.objects.get()
    assert (changed.id, changed.content, changed.importance) == (memory.id, better, 7)
    assert (changed.tags, changed.pinned, changed.embedding) == (["drink"], True, "ready")
    version = MemoryVersion.objects.get()
    assert (version.content, version.reason, version.actor) == (TEA, "said again in other words", "shell server")
    assert (version.summary, changed.summary) == ("Tea", "")
    assert 0.9 < (version.similarity or 0) < 1


@pytest.mark.parametrize(
    ("contradiction", "kind"),
    [
        (TEA.replace("Alice", "Bob"), "names"),
        (TEA.replace("prefers", "never prefers"), "negation"),
        (f"{TEA} at 7", "numbers"),
    ],
)
def test_a_contradiction_is_kept_beside_it_and_waits_for_a_person(bot: Instance, contradiction: str, kind: str) -> None:
    memory = make_memory(bot, TEA)
    embed_pending(scope_of(bot))
    Instance.objects.filter(id=bot.id).update(dedupe_threshold=0.8)
    (outcome,) = learn_all(bot, contradiction)
    assert outcome.event == "flagged"
    assert kind in outcome.reason
    assert Memory.objects.get(id=memory.id).content == TEA
    other = Memory.objects.get(content=contradiction)
    assert (other.review, other.conflicts_with_id, other.listed) == ("pending", memory.id, False)
    assert events(learn_all(bot, contradiction)) == ["seen"], "saying it again makes no third one"


def test_an_agreeing_memory_is_preferred_to_a_nearer_contradiction(bot: Instance) -> None:
    make_memory(bot, f"{TEA} at 7")
    make_memory(bot, f"{TEA} at 8")
    embed_pending(scope_of(bot))
    (outcome,) = learn_all(bot, f"{TEA} already at 8")
    assert outcome.event == "updated"
    assert sorted(Memory.objects.values_list("content", flat=True)) == [f"{TEA} already at 8", f"{TEA} at 7"]


def test_what_is_not_near_is_new(bot: Instance) -> None:
    make_memory(bot, TEA)
    embed_pending(scope_of(bot))
    assert events(learn_all(bot, "Alice Miller lives in Paris with her two dogs")) == ["created"]


def test_the_threshold_is_the_instances(bot: Instance) -> None:
    make_memory(bot, TEA)
    embed_pending(scope_of(bot))
    Instance.objects.filter(id=bot.id).update(dedupe_threshold=0.999)
    assert events(learn_all(bot, f"{TEA} now")) == ["created"]


def test_owners_and_instances_do_not_meet(bot: Instance) -> None:
    make_memory(bot, TEA)
    make_memory(bot, TEA, owner="bob")
    make_memory(make_instance(), TEA, owner="alice")
    embed_pending(scope_of(bot))
    assert events(learn_all(bot, TEA, owner="alice")) == ["created"]
    assert events(learn_all(bot, TEA, f"{TEA} now", owner="alice")) == ["seen", "updated"]
    assert Memory.objects.filter(instance=bot, content=TEA).count() == 2


def test_superseded_expired_and_told_ones_are_not_compared(bot: Instance) -> None:
    make_memory(bot, TEA, key="drink")
    make_memory(bot, "Water", key="drink", dedupe="create")
    make_memory(bot, TEA, role="historical")
    make_memory(bot, TEA, expiresAt="2020-01-01T00:00:00Z")
    embed_pending(scope_of(bot))
    assert events(learn_all(bot, f"{TEA} now")) == ["created"]


def test_twins_in_one_answer_are_one(bot: Instance) -> None:
    assert events(learn_all(bot, TEA, f"{TEA} now")) == ["created", "updated"]
    assert Memory.objects.count() == 1


def test_what_must_be_reviewed_does_not_replace_what_was_approved(bot: Instance) -> None:
    memory = make_memory(bot, TEA)
    embed_pending(scope_of(bot))
    (outcome,) = learn_all(bot, f"{TEA} now", review=Review.PENDING)
    assert (outcome.event, outcome.memory.conflicts_with_id) == ("flagged", memory.id)
    assert events(learn_all(bot, f"{TEA} now again", review=Review.PENDING)) == ["updated"], (
        "the one that waits may change"
    )


@pytest.mark.parametrize("again", [TEA, f"{TEA} now"])
def test_what_waits_is_approved_when_it_is_said_again_and_important_enough(bot: Instance, again: str) -> None:
    learn_all(bot, TEA, importance=3, review=Review.PENDING)
    assert events(learn_all(bot, TEA, importance=4, review=Review.PENDING)) == ["seen"]
    assert events(learn_all(bot, again, importance=9)) == ["updated"]
    memory = Memory.objects.get()
    assert (memory.content, memory.importance, memory.review, memory.listed) == (again, 9, "approved", True)
    assert MemoryVersion.objects.get().importance == 3
    assert AuditEntry.objects.filter(action="approved", memory_ids=[memory.id]).count() == 1
    assert find(bot, "Alice Miller").total == 1


def test_a_contradiction_that_waits_is_not_approved_by_saying_it_again(bot: Instance) -> None:
    make_memory(bot, f"{TEA} at 7")
    embed_pending(scope_of(bot))
    assert events(learn_all(bot, f"{TEA} at 8", f"{TEA} at 8", f"{TEA} already at 8")) == ["flagged", "seen", "updated"]
    assert Memory.objects.get(content=f"{TEA} already at 8").review == "pending"


def test_a_second_contradiction_points_at_what_is_approved(bot: Instance) -> None:
    approved = make_memory(bot, f"{TEA} at 7")
    embed_pending(scope_of(bot))
    first, second = learn_all(bot, f"{TEA} at 8 with milk", f"{TEA} at 9 with milk")
    assert [outcome.event for outcome in (first, second)] == ["flagged", "flagged"]
    reject(scope_of(bot), [first.memory.id])
    assert Memory.objects.get(id=second.memory.id).conflicts_with_id == approved.id


def test_without_vectors_words_decide(bot: Instance, openai: OpenAIServer, settings: Any) -> None:
    settings.OPENAI_API_KEY = ""
    make_memory(bot, TEA)
    assert events(learn_all(bot, TEA, f"{TEA} now", f"{TEA} at 7")) == ["seen", "updated", "flagged"]
    assert events(learn_all(bot, "Alice Miller lives in Paris")) == ["created"]
    assert MemoryVersion.objects.get().similarity is None
    assert set(Memory.objects.values_list("embedding", flat=True)) == {"pending"}


def test_an_embedder_that_fails_is_no_reason_to_forget(bot: Instance, openai: OpenAIServer) -> None:
    make_memory(bot, TEA)
    embed_pending(scope_of(bot))
    openai.fail("unauthorized")
    assert events(learn_all(bot, f"{TEA} now", "Bob plays chess")) == ["updated", "created"]


def test_while_the_model_changes_words_decide(bot: Instance, settings: Any) -> None:
    make_memory(bot, TEA)
    embed_pending(scope_of(bot))
    settings.EMBEDDING_MODEL = "text-embedding-3-large"
    assert events(learn_all(bot, f"{TEA} now")) == ["updated"]
    assert Memory.objects.get().embedding == "pending"


def test_a_language_that_is_chosen_meanwhile_is_theirs(bot: Instance) -> None:
    scope = scope_of(bot)
    memories = [build(scope, MemoryDraft(content=TEA))[0]]
    Instance.objects.filter(id=bot.id).update(language="german")
    with transaction.atomic():
        learn(scope, memories, [None])
    assert Chunk.objects.get(instance=bot).language == "german"


def test_the_offline_embedder_works_too(openai: OpenAIServer) -> None:
    offline = make_instance(embedder="offline")
    assert events(learn_all(offline, TEA, f"{TEA} now")) == ["created", "updated"]


@pytest.mark.django_db(transaction=True)
def test_workers_side_by_side_make_no_twins(bot: Instance) -> None:
    def one(number: int) -> list[str]:
        try:
            return events(learn_all(bot, TEA, f"Bob {number % 2} plays chess on Sundays with his old friends"))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        found = [event for events in pool.map(one, range(12)) for event in events]
    assert found.count("created") == 2
    assert sorted(Memory.objects.values_list("content", flat=True))[0] == TEA
    assert Memory.objects.filter(content=TEA).count() == 1


@pytest.mark.django_db(transaction=True)
def test_what_a_person_corrects_meanwhile_is_not_overwritten(bot: Instance) -> None:
    memory = make_memory(bot, TEA)
    embed_pending(scope_of(bot))
    corrected = TEA.replace("black tea", "mint tea")

    def correct() -> None:
        change(scope_of(bot), memory.id, MemoryChanges(content=corrected))

    (outcome,) = while_writing(correct, learn_all, bot, f"{TEA} now")
    assert (outcome.event, outcome.memory.review, outcome.memory.conflicts_with_id) == ("flagged", "pending", memory.id)
    assert Memory.objects.get(id=memory.id).content == corrected


@pytest.mark.django_db(transaction=True)
def test_what_is_superseded_meanwhile_is_learnt_anew(bot: Instance) -> None:
    memory, other = make_memory(bot, TEA), make_memory(bot, "Alice drinks tea")
    embed_pending(scope_of(bot))

    def supersede() -> None:
        merge(scope_of(bot), other.id, memory.id, "Alice drinks tea in the morning")

    (outcome,) = while_writing(supersede, learn_all, bot, f"{TEA} now")
    assert outcome.event == "created"
    assert Memory.objects.get(id=memory.id).content == TEA


def test_what_was_deleted_meanwhile_is_learnt_anew(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    make_memory(bot, TEA)
    embed_pending(scope_of(bot))
    find = deduplication._nearest

    def find_and_lose(*arguments: Any) -> Any:
        found = find(*arguments)
        Memory.objects.filter(instance=bot).delete()
        return found

    monkeypatch.setattr(deduplication, "_nearest", find_and_lose)
    assert events(learn_all(bot, f"{TEA} now")) == ["created"]
