"""Adding a tag to many memories, or removing it."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.access import Scope
from instances.models import Instance
from memories.changing_many import change_many
from memories.chunking import word_count
from memories.models import MAX_TAGS, AuditEntry, Chunk, Memory, MemoryVersion
from memoryconsole.errors import Invalid
from tests.domain.looking import find, texts
from tests.factories import make_instance, make_memories, make_memory

pytestmark = pytest.mark.django_db

AWKWARD = ['say "hi"', "back\\slash", "a,b", "{curly}", "NULL", "naïve 茶 🍵", "two words"]


def tags_of(*memories: Memory) -> list[list[str]]:
    found = dict(Memory.objects.filter(id__in=[memory.id for memory in memories]).values_list("id", "tags"))
    return [found[memory.id] for memory in memories]


def test_a_tag_is_added_behind_the_others_and_once(bot: Instance, scope: Scope) -> None:
    memories = [make_memory(bot, tags=tags) for tags in ([], ["b", "a"], ["a"], ["vip", "a"])]
    left = make_memory(bot, tags=["a"])
    assert change_many(scope, [memory.id for memory in memories], {}, add_tags=["vip"]) == 3
    assert tags_of(*memories, left) == [["vip"], ["b", "a", "vip"], ["a", "vip"], ["vip", "a"], ["a"]]


def test_a_tag_is_taken_from_those_that_have_it(bot: Instance, scope: Scope) -> None:
    memories = [make_memory(bot, tags=tags) for tags in ([], ["b"], ["a", "b", "c"], ["c"])]
    assert change_many(scope, [memory.id for memory in memories], {}, remove_tags=["b"]) == 2
    assert tags_of(*memories) == [[], [], ["a", "c"], ["c"]]


@pytest.mark.parametrize("tag", AWKWARD)
def test_any_text_is_a_tag(bot: Instance, scope: Scope, tag: str) -> None:
    memory = make_memory(bot, tags=AWKWARD[:2])
    change_many(scope, [memory.id], {}, add_tags=[tag])
    assert tags_of(memory) == [list(dict.fromkeys([*AWKWARD[:2], tag]))]
    change_many(scope, [memory.id], {}, remove_tags=[tag])
    assert tags_of(memory) == [[each for each in AWKWARD[:2] if each != tag]]


def test_a_credential_is_no_tag(bot: Instance, scope: Scope) -> None:
    memory = make_memory(bot)
    change_many(scope, [memory.id], {}, add_tags=["password: hunter22", "vip"])
    assert tags_of(memory) == [["password: [redacted password]", "vip"]]


def test_it_is_found_by_its_tags_in_every_piece(bot: Instance, scope: Scope) -> None:
    long, short = make_memory(bot, "Ann likes tea.\n\n" * 400, tags=["old"], key="drink"), make_memory(bot, "Bob")
    change_many(scope, [long.id, short.id], {}, add_tags=["oolong"], remove_tags=["old"])
    assert set(texts(find(bot, "oolong", mode="keyword"))) == {long.content, "Bob"}
    assert find(bot, "old", mode="keyword").hits == []
    pieces = Chunk.objects.filter(memory_id=long.id).values_list("about", "content", "length")
    assert len(pieces) > 1
    for about, content, length in pieces:
        assert (about, length) == ("drink\noolong", word_count(content) + 2)


def test_what_it_says_stays_as_it_is(bot: Instance, scope: Scope) -> None:
    memory, same = make_memory(bot, "Ann"), make_memory(bot, "Bob", tags=["vip"])
    Memory.objects.update(embedding="ready")
    chunks = list(Chunk.objects.order_by("id").values_list("id", "content", "live"))
    change_many(scope, [memory.id, same.id], {}, add_tags=["vip"])
    assert list(Chunk.objects.order_by("id").values_list("id", "content", "live")) == chunks
    assert set(Memory.objects.values_list("embedding", flat=True)) == {"ready"}
    assert not MemoryVersion.objects.exists()
    entry = AuditEntry.objects.latest("id")
    assert (entry.action, entry.memory_ids, entry.detail) == ("changed", [memory.id], {"fields": ["tags"]})
    assert Memory.objects.get(id=memory.id).updated_at > memory.updated_at
    assert Memory.objects.get(id=same.id).updated_at == same.updated_at


def test_one_that_has_as_many_tags_as_it_may_have_refuses_it_for_all(bot: Instance, scope: Scope) -> None:
    memories = [make_memory(bot), make_memory(bot, tags=[f"{n}" for n in range(MAX_TAGS)])]
    before = tags_of(*memories)
    with pytest.raises(Invalid, match="at most 32 tags"):
        change_many(scope, [memory.id for memory in memories], {}, add_tags=["vip"])
    assert tags_of(*memories) == before


def test_two_instances(bot: Instance, scope: Scope) -> None:
    own, theirs = make_memory(bot), make_memory(make_instance("sales-bot"), tags=["a"])
    assert change_many(scope, [own.id, theirs.id], {}, add_tags=["vip"]) == 1
    assert tags_of(own, theirs) == [["vip"], ["a"]]


def test_fifty_take_as_many_statements_as_five(bot: Instance, scope: Scope) -> None:
    statements = []
    for number in (5, 50):
        ids = [memory.id for memory in make_memories(bot, number, tags=["a"])]
        with CaptureQueriesContext(connection) as asked:
            change_many(scope, ids, {}, add_tags=["vip"])
            change_many(scope, ids, {}, remove_tags=["a"])
        statements.append(len(asked))
    assert statements[0] == statements[1]
