"""Recall: what the block contains, and what comes first if there is not enough room."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from accounts.access import SHELL, Actor, Scope
from conversations.store import MessageDraft, add_messages
from instances.models import Instance
from memories.deletion import delete_memory
from memories.draft import MemoryDraft
from memories.embedding.backfill import embed_pending
from memories.jobs import count_uses
from memories.models import Memory, Recall
from memories.recall.recalling import Recalled, RecallRequest, recall
from memories.recall.request import as_plain_words, question_in
from memories.store import save_many
from memoryconsole.inputs import is_visible, read
from tests.factories import make_conversation, make_instance, make_memories, make_memory, scope_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def bot() -> Instance:
    return make_instance("support-bot", embedder="offline")


def ask(instance: Instance, query: str = "", **request: Any) -> Recalled:
    embed_pending(scope_of(instance))
    return recall(scope_of(instance), read(RecallRequest, {"query": query, **request}))


def lines(recalled: Recalled) -> list[str]:
    return recalled.context.split("\n")[1:-1]


def test_one_block_by_role(bot: Instance) -> None:
    make_memory(bot, "Alice lives in Bern", key="home")
    make_memory(bot, "Never deploy on Fridays", role="lesson", key="deploy")
    make_memory(bot, "The office is closed in August", role="reference")
    recalled = ask(bot, "Where does Alice live?")
    assert recalled.context == (
        "<memory-context>\n"
        "[LESSON] [deploy]: Never deploy on Fridays\n"
        "[CONTEXT] [home]: Alice lives in Bern\n"
        "</memory-context>"
    )
    assert (recalled.mode, recalled.reason) == ("hybrid", "")
    assert [given.why for given in recalled.memories] == ["injected", "found"]
    assert [(dropped.reason, dropped.memory.role) for dropped in recalled.dropped] == [("threshold", "reference")]


# Who gets room first


def test_identity_first_then_what_was_asked_about(bot: Instance) -> None:
    for n in range(12):
        make_memory(bot, f"Context number {n} about nothing in particular at all, really", key=f"c{n}")
        make_memory(bot, f"Lesson number {n} about nothing in particular at all, truly", role="lesson", key=f"l{n}")
    make_memory(bot, "I am the support assistant of the shop", role="identity", key="me")
    make_memory(bot, "Alice lives in Bern", role="reference", key="home")
    recalled = ask(bot, "Where does Alice live?", tokenBudget=150, threshold=0.6)
    labels = [line.split("]")[0][1:] for line in lines(recalled)]
    assert labels == ["IDENTITY", "LESSON", "LESSON", "LESSON", "LESSON", "REFERENCE"]
    assert "[l11]" in lines(recalled)[1], "the newest lesson"
    assert recalled.tokens <= 150


def test_lessons_do_not_push_out_what_was_found(bot: Instance) -> None:
    for n in range(40):
        make_memory(bot, f"Lesson {n}: be careful with the thing number {n}, it once went wrong", role="lesson")
    for n in range(8):
        make_memory(bot, f"Alice keeps tea of brand {n} in the kitchen", role="reference")
    found = [
        given for given in ask(bot, "Which tea does Alice keep?", tokenBudget=500).memories if given.why == "found"
    ]
    assert len(found) == 8


def test_what_room_is_left_goes_to_what_is_always_injected(bot: Instance) -> None:
    make_memory(bot, "We chose plan B", role="decision", key="plan")
    make_memory(bot, "The migration is under way", key="now")
    make_memory(bot, "Old story", role="historical")
    make_memory(bot, "Alice lives in Bern", role="reference", key="home")
    assert lines(ask(bot, "Where does Alice live?")) == [
        "[DECISION] [plan]: We chose plan B",
        "[CONTEXT] [now]: The migration is under way",
        "[REFERENCE] [home]: Alice lives in Bern",
    ]


def test_the_newest_of_a_role_first_up_to_the_cap(bot: Instance) -> None:
    Instance.objects.update(recall_injected_cap=4)
    make_memory(bot, "I am the operations team", role="identity", key="me")
    for n in range(3):
        make_memory(bot, f"Decision {n}", role="decision", key=f"d{n}")
        make_memory(bot, f"Lesson {n}", role="lesson", key=f"l{n}")
    make_memory(bot, "Alice lives in Bern", role="reference", key="home")
    recalled = ask(bot, "Where does Alice live?")
    assert [given.memory.key for given in recalled.memories] == ["me", "l2", "l1", "l0", "home"]
    narrowed = ask(bot, "Where does Alice live?", filter={"role": "decision"}, limit=1)
    assert [given.memory.key for given in narrowed.memories] == ["d2", "d1", "d0"]


@pytest.mark.parametrize("request_", [{}, {"filter": {"minImportance": 1}}], ids=["all", "filtered"])
def test_what_is_pinned_is_not_pushed_out_by_what_is_newer(bot: Instance, request_: dict[str, Any]) -> None:
    Instance.objects.update(recall_injected_cap=3)
    make_memory(bot, "The shop moves in May", key="pinned", pinned=True)
    for n in range(5):
        make_memory(bot, f"Ticket {n} is open", key=f"t{n}")
    make_memory(bot, "Alice lives in Bern", role="reference", key="home")
    recalled = ask(bot, "Where does Alice live?", **request_)
    assert [given.memory.key for given in recalled.memories] == ["pinned", "t4", "t3", "home"]


def test_when_nothing_is_found_what_is_pinned_comes_before_the_newest(bot: Instance) -> None:
    make_memory(bot, "The manual is in the wiki", role="reference", key="pinned", pinned=True)
    for n in range(5):
        make_memory(bot, f"Ticket {n} was closed", role="historical", key=f"t{n}")
    recalled = ask(bot, "zzqx", limit=2)
    assert recalled.mode == "recency"
    assert [given.memory.key for given in recalled.memories] == ["pinned", "t4"]


def test_no_injection_when_the_cap_is_zero(bot: Instance) -> None:
    Instance.objects.update(recall_injected_cap=0)
    make_memory(bot, "I am the operations team", role="identity")
    make_memory(bot, "Alice lives in Bern", role="reference")
    assert len(ask(bot, "Where does Alice live?").memories) == 1


def test_the_summary_stands_in_for_a_long_text(bot: Instance) -> None:
    make_memory(bot, "Alice lives in Bern. " * 40, summary="Alice: Bern", role="reference", key="home")
    (given_one,) = ask(bot, "Where does Alice live?", tokenBudget=100).memories
    assert (given_one.placed.form, given_one.placed.line) == ("summary", "[REFERENCE] [home]: Alice: Bern")


# What is similar enough


def test_rare_words_are_enough(bot: Instance) -> None:
    make_memories(bot, 30, role="reference")
    memory = make_memory(bot, "A long story about many people, and then ticket ZX-Zanzibar came " + "up again " * 40)
    Memory.objects.filter(pk=memory.pk).update(role="reference")
    recalled = ask(bot, "ZX-Zanzibar", threshold=1)
    assert [given.memory.id for given in recalled.memories] == [memory.id]


def test_what_has_no_vector_yet_is_found_by_its_words(bot: Instance) -> None:
    make_memory(bot, "Something embedded", role="reference")
    embed_pending(scope_of(bot))
    fresh = make_memory(bot, "Alice lives in Bern", role="reference")
    recalled = recall(scope_of(bot), RecallRequest(query="Where does Alice live?"))
    assert recalled.mode == "hybrid"
    assert [given.memory.id for given in recalled.memories] == [fresh.id]


def test_old_memories_count_less_but_lessons_do_not(bot: Instance) -> None:
    long_ago = timezone.now() - timedelta(days=3000)
    old = make_memory(bot, "Alice likes tea", role="reference")
    lesson = make_memory(bot, "Alice likes tea too", role="lesson")
    Memory.objects.update(updated_at=long_ago, last_seen_at=long_ago)
    recencies = {
        given.memory.id: given.candidate.multipliers.recency
        for given in ask(bot, "Alice likes tea").memories
        if given.candidate
    }
    assert recencies == {old.id: 0.6, lesson.id: 1.0}


# The question


@pytest.mark.parametrize(
    ("messages", "question"),
    [
        ([], ""),
        (["Hello there"], "Hello there"),
        (["Where does Alice live?", "And since when?"], "Where does Alice live? And since when?"),
        (["Where does Alice live?", "And what does Bob drink?"], "And what does Bob drink?"),
        (["我的订单什么时候到？", "你们可以退款吗？"], "你们可以退款吗？"),
        (["我的订单什么时候到？", "在哪里？"], "我的订单什么时候到？ 在哪里？"),
        (["いつ届きますか", "返金できますか"], "返金できますか"),
        (["Hi", "<memory-context>x</memory-context>"], "Hi"),
    ],
)
def test_the_question_in_messages(messages: list[str], question: str) -> None:
    assert question_in(messages) == question


def test_the_question_of_a_conversation_is_not_lost_behind_tools(bot: Instance) -> None:
    conversation = make_conversation(bot, "May I refund 80 euros?")
    steps = [read(MessageDraft, {"role": role, "content": "step"}) for role in ("assistant", "tool") * 5]
    add_messages(scope_of(bot), conversation.id, steps)
    assert ask(bot, conversationId=str(conversation.id)).query == "May I refund 80 euros?"


@pytest.mark.parametrize(
    ("said", "words"),
    [('say "hello" -world', "say hello world"), ("well-known e-mail", "well-known e-mail"), ("„so“ «so»", "so so")],
)
def test_operators_are_punctuation(said: str, words: str) -> None:
    assert as_plain_words(said) == words


# On behalf of an end user


@pytest.mark.parametrize(
    ("actor", "reader", "whose"),
    [
        (SHELL, None, None),
        (SHELL, "alice", "alice"),
        (SHELL, "", ""),
        (Actor(kind="key", name="k"), "alice", "alice"),
        (Actor(kind="user", name="bob"), None, "bob"),
        (Actor(kind="user", name="bob"), "bob", "bob"),
        (Actor(kind="user", name="bob"), "alice", ""),
        (Actor(kind="user", name="bob"), "", ""),
        (Actor(kind="user", name="root", is_superadmin=True), "alice", "alice"),
    ],
)
def test_whose_private_memories(actor: Actor, reader: str | None, whose: str | None) -> None:
    assert Scope(Instance(), actor, reader=reader).private_memories_of == whose


# Afterwards


def test_uses_of_deleted_memories_are_forgotten(bot: Instance) -> None:
    memory, other = make_memory(bot, "Alice lives in Bern"), make_memory(bot, "Alice likes tea")
    ask(bot, "Alice")
    delete_memory(scope_of(bot), memory.id)
    count_uses(timestamp=0)
    assert list(Memory.objects.values_list("id", "access_count")) == [(other.id, 1)]


def test_a_recall_for_trying_out_leaves_no_trace(bot: Instance) -> None:
    memory = make_memory(bot, "Alice lives in Bern")
    assert recall(scope_of(bot), RecallRequest(query="Alice"), log=False).id is None
    count_uses(timestamp=0)
    memory.refresh_from_db()
    assert (Recall.objects.count(), memory.access_count) == (0, 0)


# Whatever is stored and asked, the block is within its budget

TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=300)
ROLES = st.sampled_from(["identity", "lesson", "decision", "context", "reference", "historical"])
STORE = st.lists(st.tuples(TEXT.filter(is_visible), ROLES, TEXT), max_size=25)


@given(STORE, TEXT, st.integers(100, 400), st.integers(1, 50), st.floats(0, 1), st.floats(0, 1))
@hypothesis_settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_never_over_budget(
    bot: Instance,
    store: list[tuple[str, str, str]],
    query: str,
    budget: int,
    limit: int,
    threshold: float,
    balance: float,
) -> None:
    Memory.objects.all().delete()
    written = [{"content": content, "role": role, "summary": summary} for content, role, summary in store]
    save_many(scope_of(bot), [read(MemoryDraft, draft) for draft in written])
    how = {"limit": limit, "threshold": threshold, "tokenBudget": budget, "mmrLambda": balance}
    recalled = ask(bot, query, **how)
    assert recalled.tokens <= budget
    assert len(recalled.context.encode()) <= 3 * budget
    assert recalled.context == ask(bot, query, **how).context
    assert len(lines(recalled)) == len(recalled.memories)
    given_ids = {given.memory.id for given in recalled.memories}
    assert given_ids.isdisjoint(dropped.memory.id for dropped in recalled.dropped)
    if len(store) > 0 and not recalled.memories:
        assert {dropped.reason for dropped in recalled.dropped} >= {"budget"}
