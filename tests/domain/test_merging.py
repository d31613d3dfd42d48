"""Merging two memories."""

from datetime import timedelta
from io import BytesIO

import pytest
from django.utils import timezone

from accounts.access import Scope
from conversations.models import Message
from instances.models import Instance
from memories.attachments import MOST, attach, attachments_of, parts_of_file
from memories.draft import MemoryChanges
from memories.filters import Filters
from memories.listing import count
from memories.models import Memory, MemoryVersion
from memories.review.merging import merge
from memories.search.hybrid import search
from memories.store import change
from memoryconsole.errors import Conflict, Invalid, NotFound
from tests.factories import make_conversation, make_instance, make_memory, make_waiting

pytestmark = pytest.mark.django_db


def test_the_other_one_is_superseded_with_its_history(bot: Instance, scope: Scope) -> None:
    kept, other = make_memory(bot, "Ann likes tea"), make_memory(bot, "Ann loves coffee", importance=9, pinned=True)
    change(scope, other.id, MemoryChanges(content="Ann loves tea"))
    merged = merge(scope, kept.id, other.id, "Ann likes and loves tea")
    assert (merged.id, merged.content, merged.importance, merged.pinned) == (
        kept.id, "Ann likes and loves tea", 9, True,
    )  # fmt: skip
    other.refresh_from_db()
    assert (other.status, other.superseded_by_id, other.supersede_reason) == (
        "superseded", kept.id, "merged with another memory",
    )  # fmt: skip
    assert set(MemoryVersion.objects.values_list("memory_id", "content")) == {
        (kept.id, "Ann likes tea"), (other.id, "Ann loves coffee"),
    }  # fmt: skip
    assert count(scope, Filters()).all == 1
    assert [hit.memory.id for hit in search(scope, "tea", Filters()).hits] == [kept.id]
    assert len(search(scope, "tea", Filters(include_superseded=True)).hits) == 2


def test_sources_and_tags_come_together(bot: Instance, scope: Scope) -> None:
    make_conversation(bot, "Tea?", "Yes")
    asked, answered = Message.objects.order_by("position").values_list("id", flat=True)
    kept = make_memory(bot, "Ann likes tea", tags=["drink", "ann"], sourceMessageIds=[str(asked)])
    other = make_memory(bot, "Ann likes green tea", tags=["ann", "green"], sourceMessageIds=[str(asked), str(answered)])
    merged = merge(scope, kept.id, other.id, "Ann likes tea")
    assert (merged.tags, merged.source_message_ids) == (["drink", "ann", "green"], [asked, answered])


def test_the_conversation_goes_over_when_the_first_has_none(bot: Instance, scope: Scope) -> None:
    first, second = make_conversation(bot, "Tea?", "Yes"), make_conversation(bot, "Green tea?", "Yes")
    written, learnt = make_memory(bot, "Ann likes tea"), make_waiting(bot, sourceConversationId=str(first.id))
    merged = merge(scope, written.id, learnt.id, "Ann likes tea")
    assert (merged.source_conversation_id, merged.conversation_position) == (first.id, 1)
    again = make_memory(bot, "Ann likes green tea", sourceConversationId=str(second.id))
    assert merge(scope, merged.id, again.id, "Ann likes tea").source_conversation_id == first.id


def test_a_key_goes_over_when_the_first_has_none(bot: Instance, scope: Scope) -> None:
    kept, other = make_memory(bot, "Ann likes tea"), make_memory(bot, "Tea for Ann", key="drink")
    assert merge(scope, kept.id, other.id, "Ann likes tea").key == "drink"
    third = make_memory(bot, "Ann takes sugar", key="sugar")
    assert merge(scope, kept.id, third.id, "Ann likes tea with sugar").key == "drink"


def test_a_waiting_one_is_deleted(bot: Instance, scope: Scope) -> None:
    kept, other = make_memory(bot, "Ann likes tea"), make_waiting(bot, "Ann likes green tea")
    merge(scope, kept.id, other.id, "Ann likes green tea")
    assert list(Memory.objects.values_list("id", "content")) == [(kept.id, "Ann likes green tea")]


def test_conflicts_with_the_other_one_are_with_the_first_from_now_on(bot: Instance, scope: Scope) -> None:
    kept, other = make_memory(bot, "Ann likes tea"), make_memory(bot, "Ann likes green tea")
    waiting = make_waiting(bot, "Ann likes coffee", other)
    merge(scope, kept.id, other.id, "Ann likes tea, green")
    waiting.refresh_from_db()
    assert waiting.conflicts_with_id == kept.id
    merge(scope, waiting.id, kept.id, "Ann drinks")
    waiting.refresh_from_db()
    assert waiting.conflicts_with_id is None


def test_what_must_not_be_mixed(bot: Instance, scope: Scope) -> None:
    public = make_memory(bot, "Public")
    private = make_memory(bot, "Private", visibility="private", owner="ann")
    shared = make_memory(bot, "Ann's, but for everybody", owner="ann")
    hers = make_memory(bot, "Bea's", visibility="private", owner="bea")
    for a, b in ((public, private), (private, public), (private, shared), (private, hers), (public, shared)):
        with pytest.raises(Conflict, match="belong to different people"):
            merge(scope, a.id, b.id, "Mixed")
    with pytest.raises(Conflict, match="with itself"):
        merge(scope, public.id, public.id, "Mixed")
    make_memory(bot, "New", key="k")
    old = Memory.objects.get(key="k")
    make_memory(bot, "Newer", key="k", dedupe="create")
    with pytest.raises(Conflict, match="superseded already"):
        merge(scope, public.id, old.id, "Mixed")
    assert not MemoryVersion.objects.exists()


def test_two_instances(bot: Instance, scope: Scope) -> None:
    memory, foreign = make_memory(bot, "Ours"), make_memory(make_instance("sales-bot"), "Theirs")
    for a, b in ((memory, foreign), (foreign, memory)):
        with pytest.raises(NotFound):
            merge(scope, a.id, b.id, "Mixed")
    assert set(Memory.objects.values_list("content", flat=True)) == {"Ours", "Theirs"}


def test_it_lives_as_long_as_the_longer_lived_of_the_two(bot: Instance, scope: Scope) -> None:
    def made(days: int | None) -> Memory:
        return make_memory(bot, expiresAt=(timezone.now() + timedelta(days=days)).isoformat() if days else None)

    for first, second in ((None, 2), (2, None), (2, 5), (5, 2), (None, None)):
        kept, other = made(first), made(second)
        merged = merge(scope, kept.id, other.id, "Merged")
        ends = [memory.expires_at for memory in (kept, other) if memory.expires_at]
        assert merged.expires_at == (max(ends) if len(ends) == 2 else None)


def test_nobody_reads_more_than_before(bot: Instance, scope: Scope) -> None:
    for first, second, narrower in (
        ("org", "instance", "instance"), ("instance", "org", "instance"), ("team", "org", "team"),
        ("org", "org", "org"), ("private", "private", "private"),
    ):  # fmt: skip
        kept = make_memory(bot, visibility=first, owner="ann")
        other = make_memory(bot, visibility=second, owner="ann")
        assert merge(scope, kept.id, other.id, "Merged").visibility == narrower


def test_a_summary_is_of_the_text_it_stands_beside(bot: Instance, scope: Scope) -> None:
    for content, summary in (("Old text", "Old"), ("New text", "New"), ("Another text", "")):
        kept = make_memory(bot, "Old text", summary="Old")
        other = make_memory(bot, "New text", summary="New")
        assert merge(scope, kept.id, other.id, content).summary == summary


def files_of(scope: Scope, memory: Memory) -> list[str]:
    return [attachment.name for attachment in attachments_of(scope, memory)]


@pytest.mark.usefixtures("storage")
def test_files_come_along_as_far_as_there_is_room(bot: Instance, scope: Scope) -> None:
    kept, other, waiting = make_memory(bot, "Tea"), make_memory(bot, "Tee"), make_waiting(bot, "Thé")
    for memory, names in ((kept, "a"), (other, "bc"), (waiting, "d")):
        for name in names:
            attach(scope, memory.id, BytesIO(name.encode()), name=name)
    merge(scope, kept.id, other.id, "Tea")
    merge(scope, kept.id, waiting.id, "Tea")
    assert (files_of(scope, kept), files_of(scope, other)) == (["a", "b", "c", "d"], [])
    assert [b"".join(parts_of_file(file)) for file in attachments_of(scope, kept)] == [b"a", b"b", b"c", b"d"]

    another = make_memory(bot, "Chai")
    for n in range(MOST):
        attach(scope, another.id, BytesIO(b"x"), name=f"{n}")
    merge(scope, kept.id, another.id, "Tea")
    assert len(files_of(scope, kept)) == MOST
    assert files_of(scope, another) == [f"{n}" for n in range(MOST - 4, MOST)]


@pytest.mark.usefixtures("storage")
def test_no_file_of_what_waited_is_lost(bot: Instance, scope: Scope) -> None:
    kept, waiting = make_memory(bot, "Tea"), make_waiting(bot, "Tee")
    names = [f"{n}" for n in range(MOST + 2)]
    for memory, theirs in ((kept, names[:-4]), (waiting, names[-4:])):
        for name in theirs:
            attach(scope, memory.id, BytesIO(name.encode()), name=name)
    merge(scope, kept.id, waiting.id, "Tea")
    assert not Memory.objects.filter(id=waiting.id).exists()
    assert files_of(scope, kept) == names
    assert [b"".join(parts_of_file(file)) for file in attachments_of(scope, kept)] == [name.encode() for name in names]
    with pytest.raises(Invalid, match="at most 20 attachments"):
        attach(scope, kept.id, BytesIO(b"x"), name="x")
