"""Chunks: how a memory is split, and what happens to its chunks when it is changed, superseded or deleted."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from procrastinate.contrib.django.models import ProcrastinateJob

from instances.models import Instance
from instances.store import InstanceChanges, change_instance, delete_instance
from memories import indexing, jobs
from memories.changing_many import change_many
from memories.deletion import delete_memory
from memories.draft import MemoryDraft
from memories.models import Chunk, Embedding, Memory, MemoryVersion
from memories.store import restore, save_many
from memories.vocabulary import EmbeddingState
from memoryconsole.inputs import read
from tests.domain.looking import embed, in_another_connection, until_somebody_waits
from tests.factories import correct, make_instance, make_memory, scope_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def bot() -> Instance:
    return make_instance("support-bot", embedder="offline")


def chunks_of(memory: Memory) -> list[Chunk]:
    return list(Chunk.objects.filter(instance=memory.instance, memory_id=memory.id).order_by("position", "id"))


def vectors_of(memory: Memory) -> list[Embedding]:
    rows = Embedding.objects.filter(instance=memory.instance, memory_id=memory.id)
    return list(rows.order_by("chunk_id"))


def words_of(memory: Memory) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tsvector_to_array(words) FROM memories_chunk WHERE memory_id = %s AND live ORDER BY position",
            [memory.id],
        )
        return {word for (words,) in cursor.fetchall() for word in words}


def long_text(paragraphs: int = 6) -> str:
    return "\n\n".join(f"Chapter {n}. " + "Bears sleep all winter long. " * 20 for n in range(paragraphs)).strip()


# Splitting a memory into chunks


@pytest.mark.parametrize(
    ("content", "owner", "first_word", "turn", "question"),
    [
        ("Ann likes green tea", "", "ann", False, False),
        ("Ann: Do you like tea?", "", "ann", True, True),
        ("[8 May 2026] Ann: I like tea", "", "8", True, False),
        ("Likes tea", "ann", "likes", False, False),
        ("“Élan” is what the shop is called", "", "élan", False, False),
        ("小明：你喜欢茶吗？", "", "小明", True, True),
        ("أين القهوة؟", "", "أين", False, True),
        ("…", "", "", False, False),
    ],
)
def test_how_it_is_said(bot: Instance, content: str, owner: str, first_word: str, turn: bool, question: bool) -> None:
    (chunk,) = chunks_of(make_memory(bot, content, owner=owner))
    assert (chunk.first_word, chunk.turn, chunk.question) == (first_word, turn, question)


def test_a_short_memory_is_one_chunk(bot: Instance) -> None:
    memory = make_memory(bot, "Alice likes tea")
    (chunk,) = chunks_of(memory)
    assert (chunk.content, chunk.position, chunk.live) == ("Alice likes tea", 0, True)
    assert (chunk.language, chunk.version_id, chunk.length) == ("english", None, 3)
    assert words_of(memory) == {"alic", "like", "tea"}


def test_a_new_description_counts_in_the_length(bot: Instance) -> None:
    memory = make_memory(bot, "Alice likes tea")
    correct(memory, tags=["green", "hot"])
    assert [chunk.length for chunk in chunks_of(memory)] == [5]
    correct(memory, tags=[])
    assert [chunk.length for chunk in chunks_of(memory)] == [3]


def test_a_long_memory_is_several(bot: Instance) -> None:
    memory = make_memory(bot, long_text())
    found = chunks_of(memory)
    assert [chunk.position for chunk in found] == list(range(len(found)))
    assert len(found) > 2
    assert all(chunk.content.startswith("Chapter") for chunk in found)


@pytest.mark.parametrize(
    ("content", "owner", "who"),
    [
        ("Carol: I like tea", "", "Carol"),
        ("Carol: I like tea", "dave", "Carol"),
        ("Likes tea", "dave", "dave"),
        ("Likes tea", "", ""),
    ],
)
def test_who_says_it_is_the_speaker_or_the_owner(bot: Instance, content: str, owner: str, who: str) -> None:
    memory = make_memory(bot, content, owner=owner)
    assert chunks_of(memory)[0].who == who
    assert {name.lower() for name in [who] if name} <= words_of(memory)


def test_what_is_known_about_it_is_indexed_too(bot: Instance) -> None:
    memory = make_memory(
        bot,
        "Likes tea",
        occurredAt=datetime(2023, 5, 8, 12, tzinfo=UTC),
        key="drink:hot_ones",
        tags=["breakfast", "Assam leaf"],
        summary="A beverage",
    )
    assert chunks_of(memory)[0].about == "8 May 2023, Monday\ndrink hot ones\nbreakfast Assam leaf\nA beverage"
    assert {"8", "may", "2023", "monday", "drink", "hot", "breakfast", "assam", "beverag", "tea"} <= words_of(memory)


def test_every_chunk_of_a_long_memory_knows_what_it_is_about(bot: Instance) -> None:
    memory = make_memory(bot, long_text(), tags=["zoology"], owner="erin")
    assert {(chunk.who, chunk.about) for chunk in chunks_of(memory)} == {("erin", "zoology")}


@pytest.mark.parametrize(
    ("content", "there"),
    [
        ("我喜欢喝茶", {"我喜", "喜欢", "欢喝", "喝茶"}),
        ("カフェで会う", {"カフ", "フェ"}),
        ("한국어", {"한국", "국어"}),
        ("ฉันชอบชา", {"ฉัน", "ชอบ", "บชา"}),
        ("tea 绿茶 time", {"tea", "绿茶", "time"}),
    ],
)
def test_scripts_without_spaces_are_indexed_in_pieces(bot: Instance, content: str, there: set[str]) -> None:
    assert there <= words_of(make_memory(bot, content))


def test_width_and_composition_do_not_matter(bot: Instance) -> None:
    assert words_of(make_memory(bot, "ＡＢＣ１２３")) == {"abc123"}
    assert words_of(make_memory(bot, "Cafe\u0301")) == words_of(make_memory(bot, "Café"))


def test_the_language_of_the_instance_is_spoken() -> None:
    german = make_instance("berater", language="german")
    assert words_of(make_memory(german, "Die Häuser sind verkauft")) == {"haus", "verkauft"}
    assert "häuser" in words_of(make_memory(make_instance(language="simple"), "Die Häuser"))


def test_another_language_cuts_again_by_a_job_of_the_same_transaction(bot: Instance) -> None:
    memory = make_memory(bot, "Die Häuser sind verkauft")
    assert "haus" not in words_of(memory)
    change_instance(scope_of(bot), InstanceChanges(language="german"))
    job = ProcrastinateJob.objects.get(task_name="use_language")
    jobs.use_language_now(**job.args)
    assert words_of(memory) == {"haus", "verkauft"}


@pytest.mark.parametrize("batch", [1, 2, 5, 6])
def test_another_language_cuts_all_of_it_some_at_a_time(
    bot: Instance, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(indexing, "LANGUAGE_BATCH", batch)
    other = make_memory(make_instance(), "Houses")
    for number in range(5):
        make_memory(bot, f"Häuser {number}")
    Instance.objects.filter(pk=bot.pk).update(language="german")
    jobs.use_language_now(instance_id=str(bot.id))
    assert {chunk.language for chunk in Chunk.objects.filter(instance=bot)} == {"german"}
    assert chunks_of(other)[0].language == "english"


WAYS: dict[str, Callable[[Instance, list[UUID]], object]] = {
    "tag": lambda bot, ids: change_many(scope_of(bot), ids, {}, add_tags=["vip"]),
    "language": lambda bot, ids: indexing.use_language(scope_of(bot)),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", WAYS)
def test_pieces_are_held_in_the_order_in_which_vectors_are_stored(way: str) -> None:
    """Otherwise a bulk change and the storing of vectors could deadlock."""
    bot = make_instance("support-bot", embedder="offline")
    memories = [make_memory(bot, content) for content in ("Tea", "Milk", "Sugar")]
    correct(memories[0], content="Coffee")
    Chunk.objects.filter(instance=bot, version_id__isnull=False).delete()
    Instance.objects.filter(pk=bot.pk).update(language="german")
    bot.refresh_from_db()
    first, *others = Chunk.objects.filter(instance=bot).order_by("id").values_list("id", flat=True)
    # An update moves the row, so that now it is the last one in the table.
    Chunk.objects.filter(instance=bot, id=first).update(about="drinks")

    def hold(*ids: UUID) -> None:
        list(Chunk.objects.filter(instance=bot, id__in=ids).select_for_update(nowait=True))

    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            hold(first)
            changing = thread.submit(in_another_connection, WAYS[way], bot, [memory.id for memory in memories])
            until_somebody_waits()
            hold(*others)
        changing.result(20)


def test_other_settings_cut_nothing_again(bot: Instance) -> None:
    change_instance(scope_of(bot), InstanceChanges(language="english", name="New name"))
    assert not ProcrastinateJob.objects.filter(task_name="use_language").exists()


# Changing and deleting


def test_a_new_text_leaves_the_old_pieces_with_the_version(bot: Instance) -> None:
    memory = make_memory(bot, "Alice likes tea")
    embed(bot)
    changed = correct(memory, content="Alice likes coffee")
    version = MemoryVersion.objects.get()
    old, new = sorted(chunks_of(memory), key=lambda chunk: chunk.live)
    assert (old.content, old.live, old.version_id) == ("Alice likes tea", False, version.id)
    assert (new.content, new.live, new.version_id) == ("Alice likes coffee", True, None)
    assert [(vector.chunk_id, vector.live) for vector in vectors_of(memory)] == [(old.id, False)]
    assert changed.embedding == EmbeddingState.PENDING
    assert embed(bot) == 1
    assert {(vector.chunk_id, vector.live) for vector in vectors_of(memory)} == {(old.id, False), (new.id, True)}


def test_a_text_that_comes_back_needs_no_new_vector(bot: Instance) -> None:
    memory = make_memory(bot, "Alice likes tea")
    embed(bot)
    (before,) = vectors_of(memory)
    correct(memory, content="Alice likes coffee")
    restore(scope_of(bot), memory.id, 1)
    embed(bot)
    (live,) = [vector for vector in vectors_of(memory) if vector.live and vector.chunk_id != before.chunk_id]
    assert live.vector == before.vector
    assert sorted(chunk.live for chunk in chunks_of(memory)) == [False, False, True]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"tags": ["hot"]}, "hot"),
        ({"summary": "A beverage"}, "beverag"),
        ({"key": "breakfast-drink"}, "breakfast"),
        ({"occurredAt": "2023-05-08T12:00:00Z"}, "monday"),
    ],
)
def test_a_new_description_is_found_and_the_vectors_stay(bot: Instance, changes: dict[str, Any], word: str) -> None:
    memory = make_memory(bot, "Alice likes tea")
    embed(bot)
    before = chunks_of(memory), vectors_of(memory)
    assert correct(memory, **changes).embedding == EmbeddingState.READY
    assert word in words_of(memory)
    assert (chunks_of(memory), vectors_of(memory)) == before


@pytest.mark.parametrize("changes", [{"pinned": True}, {"importance": 9}, {"visibility": "team"}, {"category": "fact"}])
def test_what_is_not_searched_changes_no_piece(bot: Instance, changes: dict[str, Any]) -> None:
    memory = make_memory(bot, "Alice likes tea")
    before = chunks_of(memory)
    correct(memory, **changes)
    assert chunks_of(memory) == before


def test_another_owner_is_another_text_to_embed(bot: Instance) -> None:
    memory = make_memory(bot, "Likes tea", owner="alice")
    embed(bot)
    (before,) = vectors_of(memory)
    assert correct(memory, owner="bob").embedding == EmbeddingState.PENDING
    assert vectors_of(memory) == []
    embed(bot)
    (chunk,), (after,) = chunks_of(memory), vectors_of(memory)
    assert (chunk.who, chunk.live, chunk.version_id) == ("bob", True, None)
    assert after.vector != before.vector
    assert "bob" in words_of(memory)
    assert "alic" not in words_of(memory)


def test_what_is_superseded_is_hidden(bot: Instance) -> None:
    old = make_memory(bot, "The office is in Bonn", key="office")
    embed(bot)
    new = make_memory(bot, "The office is in Bern", key="office", dedupe="create")
    assert [(chunk.live, chunk.version_id) for chunk in chunks_of(old)] == [(False, None)]
    assert [vector.live for vector in vectors_of(old)] == [False]
    assert [chunk.live for chunk in chunks_of(new)] == [True]


def test_correcting_what_is_superseded_does_not_bring_it_back(bot: Instance) -> None:
    old = make_memory(bot, "The office is in Bonn", key="office")
    make_memory(bot, "The office is in Bern", key="office", dedupe="create")
    correct(old, content="The office was in Bonn")
    correct(old, tags=["moved"])
    assert {(chunk.content, chunk.live, chunk.version_id is None, chunk.about) for chunk in chunks_of(old)} == {
        ("The office is in Bonn", False, False, "office"),
        ("The office was in Bonn", False, True, "office\nmoved"),
    }


def test_a_memory_goes_with_the_pieces_of_all_it_has_said(bot: Instance) -> None:
    memory = make_memory(bot, "Zanzibar one")
    embed(bot)
    correct(memory, content="Zanzibar two")
    embed(bot)
    receipt = delete_memory(scope_of(bot), memory.id)
    assert (receipt.chunks, receipt.embeddings, receipt.versions) == (2, 2, 1)
    assert not Chunk.objects.exists()
    assert not Embedding.objects.exists()


def test_an_instance_goes_with_its_index(bot: Instance) -> None:
    make_memory(bot, "Alice likes tea")
    embed(bot)
    delete_instance(scope_of(bot))
    assert not Chunk.objects.exists()
    assert not Embedding.objects.exists()


def test_new_words_are_soon_where_search_finds_them_at_once(bot: Instance) -> None:
    """Every search reads the whole pending list of the GIN index, so it has to stay short."""
    drafts = [read(MemoryDraft, {"content": f"Customer {n} called about order {n * 7}"}) for n in range(500)]
    for _ in range(6):
        save_many(scope_of(bot), drafts)
    with connection.cursor() as cursor:
        cursor.execute("SELECT gin_clean_pending_list('chunk_words') * current_setting('block_size')::int")
        assert cursor.fetchone()[0] <= 256 * 1024
        cursor.execute("SELECT reloptions FROM pg_class WHERE relname = 'memories_chunk'")
        assert "autovacuum_analyze_threshold=500" in cursor.fetchone()[0]
