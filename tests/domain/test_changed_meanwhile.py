"""Two writers at once: the second one waits and decides by what the first one has committed."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from django.db import transaction

from instances.models import Instance
from memories import changing_many
from memories.changing_many import change_many
from memories.deletion import delete_matching, delete_memory
from memories.draft import MemoryChanges, MemoryDraft
from memories.filters import Filters
from memories.learning.deduplication import Outcome, learn
from memories.models import LISTED, Memory
from memories.store import build, change, locked
from memoryconsole.errors import Conflict
from tests.domain.looking import in_another_connection, until_somebody_waits, while_writing
from tests.factories import make_memory, scope_of

pytestmark = pytest.mark.django_db(transaction=True)


def rewrite(memory: Memory, content: str) -> Memory:
    return change(scope_of(memory.instance), memory.id, MemoryChanges(content=content), seen=memory.updated_at)


def test_two_corrections_of_the_same_text_are_not_both_made(bot: Instance) -> None:
    memory = make_memory(bot, "Alice likes tea")
    with pytest.raises(Conflict, match="while you were writing"):
        while_writing(lambda: rewrite(memory, "Alice likes coffee"), rewrite, memory, "Alice likes cocoa")
    memory.refresh_from_db()
    assert memory.content == "Alice likes coffee"


TEA = "Alice Miller prefers strong black tea with fresh lemon every single morning"


def test_what_is_learnt_does_not_go_into_what_has_just_been_superseded(bot: Instance) -> None:
    make_memory(bot, TEA, key="tea")
    given_up = {"content": "Alice Miller gave up tea", "key": "tea", "dedupe": "create"}
    outcome = while_writing(lambda: make_memory(bot, **given_up), learn_one, bot, f"{TEA} now")
    assert outcome.event == "created"
    listed = Memory.objects.filter(LISTED).order_by("id").values_list("content", flat=True)
    assert list(listed) == ["Alice Miller gave up tea", f"{TEA} now"]


def test_what_is_learnt_does_not_wait_for_review_beside_what_has_just_been_deleted(bot: Instance) -> None:
    memory = make_memory(bot, TEA)
    outcome = while_writing(lambda: delete_memory(scope_of(bot), memory.id), learn_one, bot, f"{TEA} at 7")
    assert (outcome.event, outcome.memory.conflicts_with_id) == ("created", None)


def learn_one(bot: Instance, content: str) -> Outcome:
    scope = scope_of(bot)
    memory, _ = build(scope, MemoryDraft(content=content))
    with transaction.atomic():
        return learn(scope, [memory], [None])[0]


def test_what_no_longer_matches_is_not_deleted(bot: Instance) -> None:
    memory = make_memory(bot, "Alice likes tea", tags=["old"])
    scope, old = scope_of(bot), Filters(tag=["old"])
    with pytest.raises(Conflict, match="0 memories match now"):
        while_writing(
            lambda: change(scope, memory.id, MemoryChanges(tags=["kept"])),
            lambda: delete_matching(scope, old, expected=1),
        )
    assert Memory.objects.get().tags == ["kept"]


def test_a_bulk_change_and_whoever_locks_the_same_memories_do_not_wait_for_each_other(
    bot: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody locks memories in the order of their ids, also across the batches of a large change."""
    monkeypatch.setattr(changing_many, "BATCH", 1)
    scope, older, newer = scope_of(bot), make_memory(bot), make_memory(bot)
    change_both = partial(in_another_connection, change_many, scope, [newer.id, older.id], {"pinned": True})
    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            for memory in (older, newer):
                list(locked(scope, [memory.id]))
                if memory == older:
                    changing = thread.submit(change_both)
                    until_somebody_waits()
        assert changing.result(20) == 2
