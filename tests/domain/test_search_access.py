"""Search finds what the reader may see, and what is past only when it is asked for."""

from typing import Any

import pytest
from django.utils import timezone

from accounts.access import actor_of_user
from instances.models import Instance
from memories.draft import MemoryChanges
from memories.filters import Filters
from memories.models import Memory, MemoryCount
from memories.search.hybrid import search
from memories.store import change
from tests.domain.looking import MODES, embed, find, texts
from tests.factories import make_conversation, make_instance, make_memory, make_user, scope_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("size")]


def test_two_instances_do_not_know_of_each_other(hashed: Instance) -> None:
    other = make_instance("other-bot", embedder="offline")
    theirs = make_conversation(other)
    for n in range(3):
        make_memory(other, f"The secret zeppelin {n}", sourceConversationId=str(theirs.id))
    make_memory(hashed, "Alice likes tea")
    embed(hashed)
    embed(other)
    for mode in MODES:
        assert set(texts(find(hashed, "secret zeppelin tea", mode=mode))) == {"Alice likes tea"}
    results = find(hashed, "zepelin", mode="keyword")
    assert (results.hits, results.total, results.corrected) == ([], 0, {})


def test_private_memories_are_their_owners(hashed: Instance) -> None:
    bob = make_user("bob", hashed)
    conversation = make_conversation(hashed)
    for content, fields in [
        ("Alice secretly flies a zeppelin", {"owner": "alice", "visibility": "private"}),
        ("Alice likes tea", {}),
        ("Bob secretly likes tea", {"owner": "bob", "visibility": "private"}),
    ]:
        make_memory(hashed, content, sourceConversationId=str(conversation.id), **fields)
    embed(hashed)
    scope = scope_of(hashed, actor_of_user(bob))
    for mode in MODES:
        found = search(scope, "who secretly likes tea or a zeppelin", Filters(), mode=mode)
        assert set(texts(found)) == {"Alice likes tea", "Bob secretly likes tea"}
        assert found.total == 2
    results = search(scope, "zepelin", Filters(), mode="keyword")
    assert (results.hits, results.corrected) == ([], {})
    assert search(scope_of(hashed), "zepelin", Filters(), mode="keyword").corrected == {"zepelin": "zeppelin"}


@pytest.mark.parametrize("mode", MODES)
def test_what_was_made_private_a_moment_ago_is_its_owners_already(hashed: Instance, mode: Any) -> None:
    bob = make_user("bob", hashed)
    conversation = make_conversation(hashed)
    for content, fields in [
        ("Alice flies a zeppelin", {"owner": "alice", "visibility": "private"}),
        ("Alice likes tea", {}),
        ("Alice told nobody", {"owner": "alice", "visibility": "private"}),
    ]:
        make_memory(hashed, content, sourceConversationId=str(conversation.id), **fields)
    embed(hashed)
    # What the search counted just before.
    MemoryCount.objects.filter(instance=hashed).update(private=False)
    found = search(scope_of(hashed, actor_of_user(bob)), "zeppelin or tea", Filters(), mode=mode)
    assert (texts(found), found.total) == (["Alice likes tea"], 1)


@pytest.mark.parametrize("mode", MODES)
def test_what_has_expired_is_never_found(hashed: Instance, mode: Any) -> None:
    conversation = make_conversation(hashed)
    gone = make_memory(hashed, "Tea at five", sourceConversationId=str(conversation.id))
    make_memory(hashed, "Tea at six", sourceConversationId=str(conversation.id))
    embed(hashed)
    Memory.objects.filter(id=gone.id).update(expires_at=timezone.now())
    assert texts(find(hashed, "tea", mode=mode)) == ["Tea at six"]
    assert texts(find(hashed, "tea", {"includeSuperseded": "true"}, mode=mode)) == ["Tea at six"]


@pytest.mark.parametrize("filters", [{}, {"includeSuperseded": "true"}])
def test_what_waits_for_review_is_not_found(hashed: Instance, filters: dict[str, str]) -> None:
    memory = make_memory(hashed, "Tea at five")
    embed(hashed)
    Memory.objects.filter(id=memory.id).update(review="pending")
    for mode in MODES:
        assert find(hashed, "tea", filters, mode=mode).hits == []


def test_what_waits_for_review_is_not_found_beside_what_was_said_before_it(hashed: Instance) -> None:
    conversation = make_conversation(hashed)
    make_memory(hashed, "Tea at five", sourceConversationId=str(conversation.id))
    waiting = make_memory(hashed, "Scones with it", sourceConversationId=str(conversation.id))
    assert texts(find(hashed, "tea")) == ["Tea at five", "Scones with it"]
    Memory.objects.filter(id=waiting.id).update(review="pending")
    assert texts(find(hashed, "tea")) == ["Tea at five"]


def test_a_hit_shows_what_it_says_now_though_more_of_the_words_were_said_before(hashed: Instance) -> None:
    memory = make_memory(hashed, "Alice likes green tea with lemon")
    change(scope_of(hashed), memory.id, MemoryChanges(content="Alice likes coffee"))
    embed(hashed)
    (hit,) = find(hashed, "Alice green tea lemon").hits
    assert (hit.found.content, hit.found.matched, hit.version) == ("Alice likes coffee", ["alic"], None)


def test_conditions_ask_for_what_is_said_now(hashed: Instance) -> None:
    memory = make_memory(hashed, "Alice likes green tea")
    change(scope_of(hashed), memory.id, MemoryChanges(content="Alice likes coffee"))
    embed(hashed)
    before = {"includeSuperseded": "true"}
    assert texts(find(hashed, "Alice -tea")) == ["Alice likes coffee"]
    assert texts(find(hashed, "Alice -tea", before)) == []
    assert texts(find(hashed, 'Alice "green tea"')) == []
    assert texts(find(hashed, 'Alice "green tea"', before)) == ["Alice likes coffee"]


def test_earlier_texts_are_found_when_asked_for(hashed: Instance) -> None:
    memory = make_memory(hashed, "The office is in Bonn")
    embed(hashed)
    change(scope_of(hashed), memory.id, MemoryChanges(content="The office is in Bern"))
    embed(hashed)
    assert find(hashed, "bonn", mode="keyword").hits == []
    (hit,) = find(hashed, "bonn", {"includeSuperseded": "true"}).hits
    assert (hit.memory.id, hit.found.content) == (memory.id, "The office is in Bonn")
    assert hit.version is not None
    assert (hit.version.number, hit.version.content) == (1, "The office is in Bonn")
    (hit,) = find(hashed, "bern", {"includeSuperseded": "true"}).hits
    assert (hit.version, hit.found.content) == (None, "The office is in Bern")


@pytest.mark.parametrize("filters", [{}, {"category": "general"}])
def test_earlier_texts_are_compared_by_meaning_too(hashed: Instance, size: str, filters: dict[str, str]) -> None:
    """Of instances of any size, and under filters."""
    memory = make_memory(hashed, "The office is in Bonn")
    embed(hashed)
    change(scope_of(hashed), memory.id, MemoryChanges(content="Nobody works on Mondays"))
    embed(hashed)
    (hit,) = find(hashed, "The office is in Bonn", {"includeSuperseded": "true", **filters}, mode="vector").hits
    assert hit.found.similarity == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("mode", MODES)
def test_superseded_memories_are_found_when_asked_for(hashed: Instance, mode: Any) -> None:
    make_memory(hashed, "The office is in Bonn", key="office")
    make_memory(hashed, "The office is in Bern", key="office", dedupe="create")
    embed(hashed)
    assert texts(find(hashed, "office", mode=mode)) == ["The office is in Bern"]
    both = find(hashed, "office bonn", {"includeSuperseded": "true"}, mode="keyword")
    assert set(texts(both)) == {"The office is in Bonn", "The office is in Bern"}
