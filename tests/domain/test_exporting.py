"""Export, and import of what was exported: nothing is lost, and nobody gets what they may not read."""

import csv
import io
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.access import Actor, Scope
from instances.models import Instance
from instances.store import InstanceChanges, change_instance
from memories import jobs
from memories.draft import MemoryChanges, MemoryDraft
from memories.filters import Filters
from memories.models import AuditEntry, Chunk, Embedding, Memory, MemoryVersion
from memories.search.hybrid import search
from memories.store import change, find_memory, save
from memories.transfer import importing
from memories.transfer.exporting import export
from memories.transfer.formats.table import COLUMNS, from_cells, table_text
from memories.transfer.report import Report
from memories.vocabulary import Category, Role
from memoryconsole.inputs import is_visible
from tests.domain.transferring import EVERYTHING, counts, exported, exported_rows, import_text
from tests.factories import make_conversation, make_instance, make_memory, scope_of

pytestmark = pytest.mark.django_db


# Export and import of the same data


def full_life(bot: Instance) -> None:
    conversation = make_conversation(bot, "Hello", "Hi")
    scope = scope_of(bot)
    tea = make_memory(
        bot,
        "Alice likes herbal tea",
        key="drink",
        owner="alice",
        visibility="private",
        tags=["a,b", "=c"],
        pinned=True,
        evidence={"corroborated": 2, "domains": ["x"]},
        confidence=0.25,
        summary="tea",
        role="identity",
        category="preference",
        importance=9,
        occurredAt="2026-05-12T15:00:00.123456Z",
        expiresAt="2100-01-01T00:00:00Z",
        channel="phone",
        source="crm",
        sourceConversationId=str(conversation.id),
    )
    change(scope, tea.id, MemoryChanges(content="Alice likes green tea", supersede_reason="more precise"))
    change(scope, tea.id, MemoryChanges(importance=8))
    make_memory(bot, "Seats: 10", key="seats")
    save(
        scope,
        MemoryDraft(content="Seats: 12", key="seats", dedupe="create", supersede_reason="grew"),
    )
    make_memory(bot, "Twice")
    make_memory(bot, "Twice", category="fact")
    Memory.objects.filter(id=tea.id).update(access_count=3, last_accessed_at=timezone.now())


def searchable(instance: Instance) -> list[tuple[Any, ...]]:
    rows = Chunk.objects.filter(instance=instance).order_by("content", "live")
    return list(rows.values_list("content", "who", "about", "length", "live", "text_hash"))


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_there_and_back_again(bot: Instance, other: Instance, format: str) -> None:
    full_life(bot)
    report = import_text(other, exported(bot, format=format))
    assert counts(report) == {"rows": 5, "created": 5}
    before, after = exported_rows(bot), exported_rows(other)
    assert report.dropped_links == 1
    before[0]["sourceConversationId"] = None
    if format == "csv":
        del before[0]["versions"]
    assert after == before
    assert counts(import_text(other, exported(bot, format=format))) == {"rows": 5, "existing": 5}
    assert counts(import_text(bot, exported(bot, format=format))) == {"rows": 5, "existing": 5}


def test_sources_that_are_here_stay(bot: Instance) -> None:
    conversation = make_conversation(bot, "Hello", "Hi")
    make_memory(bot, "One", sourceConversationId=str(conversation.id))
    make_memory(bot, "Two", sourceConversationId=str(conversation.id))
    text = exported(bot)
    before = exported_rows(bot)
    Memory.objects.all().delete()
    assert import_text(bot, text).dropped_links == 0
    assert exported_rows(bot) == before
    positions = dict(Memory.objects.values_list("content", "conversation_position"))
    assert positions == {"One": 1, "Two": 2}


def test_earlier_texts_are_found_again(bot: Instance, other: Instance) -> None:
    full_life(bot)
    import_text(other, exported(bot))
    assert MemoryVersion.objects.filter(instance=other).count() == 2
    found = search(scope_of(other), "herbal tea", EVERYTHING, mode="keyword").hits
    assert [(hit.memory.content, hit.version.number) for hit in found if hit.version] == [("Alice likes green tea", 1)]
    assert searchable(other) == searchable(bot)
    superseded = Memory.objects.get(instance=other, status="superseded")
    assert find_memory(scope_of(other), superseded.superseded_by_id).content == "Seats: 12"


def test_vectors_come_along_when_the_model_is_the_same() -> None:
    bot, same = make_instance(embedder="offline"), make_instance(embedder="offline")
    without = make_instance()
    make_memory(bot, "Alice likes tea")
    make_memory(bot, "Chapter one. " * 300)
    jobs.embed_memories(str(bot.id))
    text = exported(scope_of(bot).instance, vectors=True)
    assert '"vectors"' not in exported(scope_of(bot).instance)
    import_text(same, text)
    rows = Embedding.objects.filter(instance=same).values_list("vector", flat=True)
    originals = Embedding.objects.filter(instance=bot).values_list("vector", flat=True)
    assert sorted(map(str, rows)) == sorted(map(str, originals))
    assert set(Memory.objects.filter(instance=same).values_list("embedding", flat=True)) == {"ready"}
    assert scope_of(same).instance.embedding_model == scope_of(bot).instance.embedding_model
    assert search(scope_of(same), "tea", Filters()).mode == "hybrid"
    import_text(without, text)
    assert not Embedding.objects.filter(instance=without).exists()
    assert set(Memory.objects.filter(instance=without).values_list("embedding", flat=True)) == {"pending"}


def test_another_language_or_model_is_noticed_between_two_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "BATCH", 1)
    bot, other = make_instance(embedder="offline"), make_instance(embedder="offline")
    for text in ("Alte Häuser", "Neue Häuser"):
        make_memory(bot, text)
    jobs.embed_memories(str(bot.id))

    def meanwhile(report: Report, position: int) -> None:
        if report.created > 1:
            return
        change_instance(scope_of(other), InstanceChanges(language="german", embedder="openai"))
        jobs.use_language_now(str(other.id))
        Instance.objects.filter(id=other.id).update(embedding_model="text-embedding-3-small", embedding_generation=7)

    import_text(other, exported(bot, vectors=True), progress=meanwhile)
    assert set(Chunk.objects.filter(instance=other).values_list("language", flat=True)) == {"german"}
    assert Embedding.objects.filter(instance=other).count() == 1, "the second vector is of a model that is not used"
    states = Memory.objects.filter(instance=other).values_list("embedding", flat=True)
    assert sorted(states) == ["pending", "ready"]


TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=30)
WORDS = TEXT.map(str.strip).filter(is_visible)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
DRAFTS = st.fixed_dictionaries(
    {"content": WORDS},
    optional={
        "summary": TEXT,
        "category": st.sampled_from(Category.values),
        "role": st.sampled_from(Role.values),
        "importance": st.integers(1, 10),
        "confidence": st.floats(0, 1),
        "tags": st.lists(TEXT, max_size=4),
        "pinned": st.booleans(),
        "owner": WORDS,
        "channel": TEXT,
        "occurredAt": st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(datetime.isoformat),
        "evidence": st.dictionaries(TEXT, NUMBERS | st.none() | st.booleans() | TEXT | st.lists(TEXT), max_size=3),
    },
)


@pytest.mark.parametrize("format", ["jsonl", "csv"])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
@given(drafts=st.lists(DRAFTS, min_size=1, max_size=6), edits=st.lists(WORDS, max_size=3))
def test_whatever_is_remembered_comes_back_row_by_row(
    format: str, drafts: list[dict[str, Any]], edits: Sequence[str]
) -> None:
    bot, other = make_instance(), make_instance()
    memories = [make_memory(bot, **draft) for draft in drafts]
    for text in edits:
        change(scope_of(bot), memories[0].id, MemoryChanges(content=text))
    report = import_text(other, exported(bot, format=format))
    assert counts(report) == {"rows": len(drafts), "created": len(drafts)}
    before, after = exported_rows(bot), exported_rows(other)
    if format == "csv":
        before = [{name: value for name, value in row.items() if name != "versions"} for row in before]
    assert after == before
    assert counts(import_text(other, exported(bot, format=format))) == {"rows": len(drafts), "existing": len(drafts)}


@given(TEXT, TEXT)
def test_no_cell_is_a_formula_and_none_is_changed(content: str, tag: str) -> None:
    row = dict.fromkeys(COLUMNS) | {"content": content, "tags": [tag], "pinned": False}
    (cells,) = csv.reader(io.StringIO(table_text([row]), newline=""))
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells)
    read = from_cells(dict(zip(COLUMNS, cells, strict=True)))
    assert (read.get("content", ""), read["tags"]) == (content, [tag])


# Who may export what


def test_only_what_the_reader_may_read(bot: Instance, other: Instance) -> None:
    make_memory(bot, "Everybody's")
    make_memory(bot, "Bob's", visibility="private", owner="bob")
    make_memory(bot, "Gone", expiresAt="2020-01-01T00:00:00Z")
    make_memory(other, "Shared by another instance", visibility="team")
    alice = Scope(bot, Actor(kind="user", name="alice"))
    assert [json.loads(row)["content"] for row in "".join(export(alice, Filters())).splitlines()] == ["Everybody's"]
    assert "Bob's" in exported(bot)
    assert "Shared" not in exported(bot)
    assert "Gone" not in exported(bot)


def test_filters_narrow_and_the_log_keeps_who_took_what(bot: Instance) -> None:
    make_memory(bot, "Tea", tags=["drink"])
    make_memory(bot, "Bread", tags=["food"])
    assert "Bread" not in exported(bot, Filters(tag=["drink"]))
    entry = AuditEntry.objects.filter(action="exported").latest("id")
    assert (entry.actor, entry.detail) == ("shell server", {"format": "jsonl", "filters": ["tag"]})
