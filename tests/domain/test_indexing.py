"""The index: what a memory is cut into, and what becomes of the pieces when it changes, is replaced or is deleted."""

from collections.abc import Callable, Iterator
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
from memories.draft import MemoryChanges, MemoryDraft
from memories.models import Chunk, Embedding, Memory, MemoryVersion
from memories.store import change, restore, save, save_many
from memories.vocabulary import EmbeddingState
from memoryconsole.inputs import read
from tests.domain.looking import embed, in_another_connection, until_somebody_waits
from tests.factories import make_conversation, make_instance, make_memory, scope_of

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


def update(memory: Memory, **changes: Any) -> Memory:
    return change(scope_of(memory.instance), memory.id, read(MemoryChanges, changes))


def long_text(paragraphs: int = 6) -> str:
    return "\n\n".join(f"Chapter {n}. " + "Bears sleep all winter long. " * 20 for n in range(paragraphs)).strip()


# What a memory is cut into


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
    memory = make_memory(bot, "Alice likes tea", category="preference")
    (chunk,) = chunks_of(memory)
    assert (chunk.content, chunk.position, chunk.category, chunk.live) == ("Alice likes tea", 0, "preference", True)
    assert (chunk.language, chunk.version_id, chunk.length) == ("english", None, 3)
    assert words_of(memory) == {"alic", "like", "tea"}


def test_a_new_description_counts_in_the_length(bot: Instance) -> None:
    memory = make_memory(bot, "Alice likes tea")
    update(memory, tags=["green", "hot"])
    assert [chunk.length for chunk in chunks_of(memory)] == [5]
    update(memory, tags=[])
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
    "category": lambda bot, ids: change_many(scope_of(bot), ids, {"category": "decision"}),
    "tag": lambda bot, ids: change_many(scope_of(bot), ids, {}, add_tags=["vip"]),
    "language": lambda bot, ids: indexing.use_language(scope_of(bot)),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", WAYS)
def test_pieces_are_held_in_the_order_in_which_vectors_are_stored(way: str) -> None:
    """Or a change of many and the vectors of the same would each wait for what the other one holds."""
    bot = make_instance("support-bot", embedder="offline")
    memories = [make_memory(bot, content) for content in ("Tea", "Milk", "Sugar")]
    change(scope_of(bot), memories[0].id, read(MemoryChanges, {"content": "Coffee"}))
    Chunk.objects.filter(instance=bot, version_id__isnull=False).delete()
    Instance.objects.filter(pk=bot.pk).update(language="german")
    bot.refresh_from_db()
    first, *others = Chunk.objects.filter(instance=bot).order_by("id").values_list("id", flat=True)
    # Now it is the last one in the table, and neither the first one by its memory.
    Chunk.objects.filter(instance=bot, id=first).update(category="event")

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


# What becomes of the pieces


def test_a_new_text_leaves_the_old_pieces_with_the_version(bot: Instance) -> None:
    memory = make_memory(bot, "Alice likes tea")
    embed(bot)
    changed = update(memory, content="Alice likes coffee")
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
    update(memory, content="Alice likes coffee")
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
    assert update(memory, **changes).embedding == EmbeddingState.READY
    assert word in words_of(memory)
    assert (chunks_of(memory), vectors_of(memory)) == before


def test_another_category_is_written_on_the_pieces(bot: Instance) -> None:
    memory = make_memory(bot, "Alice likes tea")
    update(memory, category="preference")
    assert [chunk.category for chunk in chunks_of(memory)] == ["preference"]


@pytest.mark.parametrize("changes", [{"pinned": True}, {"importance": 9}, {"visibility": "team"}])
def test_what_is_not_searched_changes_no_piece(bot: Instance, changes: dict[str, Any]) -> None:
    memory = make_memory(bot, "Alice likes tea")
    before = chunks_of(memory)
    update(memory, **changes)
    assert chunks_of(memory) == before


def test_another_owner_is_another_text_to_embed(bot: Instance) -> None:
    memory = make_memory(bot, "Likes tea", owner="alice")
    embed(bot)
    (before,) = vectors_of(memory)
    assert update(memory, owner="bob").embedding == EmbeddingState.PENDING
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
    update(old, content="The office was in Bonn")
    update(old, tags=["moved"])
    assert {(chunk.content, chunk.live, chunk.version_id is None, chunk.about) for chunk in chunks_of(old)} == {
        ("The office is in Bonn", False, False, "office"),
        ("The office was in Bonn", False, True, "office\nmoved"),
    }


TEXT_COLUMNS = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = 'public' AND table_name NOT LIKE 'pg_%' AND data_type IN
      ('text', 'character varying', 'jsonb', 'json', 'ARRAY', 'tsvector', 'USER-DEFINED')
"""


def places_that_say(word: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(TEXT_COLUMNS)
        found = []
        for table, column in cursor.fetchall():
            cursor.execute(f'SELECT count(*) FROM "{table}" WHERE "{column}"::text ILIKE %s', [f"%{word}%"])
            if cursor.fetchone()[0]:
                found.append(f"{table}.{column}")
    return found


def test_deleting_leaves_nothing_anywhere(bot: Instance) -> None:
    memory = make_memory(bot, "Zanzibar one", summary="Zanzibar", key="zanzibar", tags=["zanzibar"], owner="zanzibar")
    embed(bot)
    update(memory, content="Zanzibar two")
    embed(bot)
    assert {"memories_chunk.content", "memories_chunk.words", "memories_memoryversion.content"} <= set(
        places_that_say("zanzibar")
    )
    receipt = delete_memory(scope_of(bot), memory.id)
    assert (receipt.chunks, receipt.embeddings, receipt.versions) == (2, 2, 1)
    assert places_that_say("zanzibar") == []
    assert not Chunk.objects.exists()
    assert not Embedding.objects.exists()


def test_an_instance_goes_with_its_index(bot: Instance) -> None:
    make_memory(bot, "Alice likes tea")
    embed(bot)
    delete_instance(scope_of(bot))
    assert not Chunk.objects.exists()
    assert not Embedding.objects.exists()


# When the worker is asked


def queued() -> list[dict[str, Any]]:
    return list(
        ProcrastinateJob.objects.filter(task_name="embed_memories", status="todo").values_list("args", flat=True)
    )


def test_many_memories_are_one_job(bot: Instance) -> None:
    make_memory(bot, "One")
    save_many(scope_of(bot), [MemoryDraft(content="Two"), MemoryDraft(content="Three")])
    assert queued() == [{"instance_id": str(bot.id)}]


def test_without_a_model_nothing_is_queued() -> None:
    make_memory(make_instance(), "One")
    assert queued() == []


def test_a_change_of_tags_asks_for_no_vectors(bot: Instance) -> None:
    memory = make_memory(bot, "One")
    finish_queued()
    change_many(scope_of(bot), [memory.id], {}, add_tags=["new"])
    assert queued() == []
    update(memory, content="Two")
    assert len(queued()) == 1


@pytest.mark.django_db(transaction=True)
def test_a_job_that_began_too_early_is_followed_by_another(bot: Instance) -> None:
    """It was queued when the second was saved, but began and ended before that transaction did."""
    make_memory(bot, "One")
    with transaction.atomic():
        make_memory(bot, "Two")
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(in_another_connection, finish_queued).result()
        assert queued() == []
    assert queued() == [{"instance_id": str(bot.id)}]


def finish_queued() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE procrastinate_jobs SET status = 'succeeded'")


# Places in a conversation


def places(instance: Instance) -> list[int]:
    rows = Memory.objects.filter(instance=instance).order_by("conversation_position")
    return list(rows.values_list("conversation_position", flat=True))


def test_memories_are_numbered_in_their_conversation(bot: Instance) -> None:
    one, other = make_conversation(bot), make_conversation(bot)
    first = make_memory(bot, "a", sourceConversationId=str(one.id))
    drafts = [MemoryDraft(content=text, source_conversation_id=id) for text, id in
              [("b", one.id), ("c", other.id), ("d", one.id), ("e", None)]]  # fmt: skip
    bulk = save_many(scope_of(bot), drafts)
    assert [memory.conversation_position for memory in [first, *bulk]] == [1, 2, 1, 3, 0]


def test_a_memory_that_moves_goes_to_the_end(bot: Instance) -> None:
    one, other = make_conversation(bot), make_conversation(bot)
    moving = make_memory(bot, "a", sourceConversationId=str(one.id))
    make_memory(bot, "b", sourceConversationId=str(other.id))
    update(moving, sourceConversationId=str(other.id))
    assert Memory.objects.get(content="a").conversation_position == 2
    update(moving, sourceConversationId=None)
    assert Memory.objects.get(content="a").conversation_position == 0


@pytest.fixture
def four_at_once() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.mark.django_db(transaction=True)
def test_in_parallel_no_two_have_the_same_place(bot: Instance, four_at_once: ThreadPoolExecutor) -> None:
    conversation = make_conversation(bot)

    def add(n: int) -> None:
        save(scope_of(bot), MemoryDraft(content=f"Memory {n}", source_conversation_id=conversation.id))

    list(four_at_once.map(lambda n: in_another_connection(add, n), range(20)))
    assert places(bot) == list(range(1, 21))


def test_new_words_are_soon_where_search_finds_them_at_once(bot: Instance) -> None:
    """Every search reads the list of new words to its end, those of other instances included: it stays short."""
    drafts = [read(MemoryDraft, {"content": f"Customer {n} called about order {n * 7}"}) for n in range(500)]
    for _ in range(6):
        save_many(scope_of(bot), drafts)
    with connection.cursor() as cursor:
        cursor.execute("SELECT gin_clean_pending_list('chunk_words') * current_setting('block_size')::int")
        assert cursor.fetchone()[0] <= 256 * 1024
        cursor.execute("SELECT reloptions FROM pg_class WHERE relname = 'memories_chunk'")
        assert "autovacuum_analyze_threshold=500" in cursor.fetchone()[0]
