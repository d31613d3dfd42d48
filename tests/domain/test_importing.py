"""Export and import: nothing is lost, nothing is imported twice, and every problem has a line."""

import csv
import io
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
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
from memories.transfer import importing, known
from memories.transfer.exporting import export
from memories.transfer.formats.table import COLUMNS, from_cells, table_text
from memories.transfer.importing import import_file
from memories.transfer.report import Report
from memories.vocabulary import Category, Role
from memoryconsole.errors import NotAllowed
from memoryconsole.ids import uuid7
from memoryconsole.inputs import is_visible
from tests.domain.transferring import EVERYTHING, contents, counts, exported, exported_rows, import_text, lines
from tests.factories import make_conversation, make_instance, make_memory, scope_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def other() -> Instance:
    return make_instance("sales-bot")


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


# Rows that exist already


def test_by_key_and_by_content(bot: Instance) -> None:
    make_memory(bot, "Alice likes tea")
    make_memory(bot, "Ten seats", key="seats")
    rows = lines(
        {"content": "Alice likes tea"},
        {"content": "Ten seats", "key": "seats"},
        {"content": "Twelve seats", "key": "seats"},
        {"content": "Twelve seats", "key": "seats", "owner": "acme"},
        {"content": "New"},
        {"content": "New"},
    )
    for _ in range(2):
        report = import_text(bot, rows)
        assert report.problems == [
            {"line": 3, "errors": {"key": ["Another memory has this key, and says something else."]}}
        ]
    assert counts(report) == {"rows": 6, "existing": 5, "invalid": 1}
    assert contents(bot) == ["Alice likes tea", "New", "Ten seats", "Twelve seats"]


def test_over_batches(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "BATCH", 2)
    rows = lines(*({"content": f"Memory {n % 4}"} for n in range(9)))
    seen: list[int] = []
    report = import_text(bot, rows, progress=lambda report, position: seen.append(position))
    assert counts(report) == {"rows": 9, "created": 4, "existing": 5}
    assert seen[-1] == len(rows)
    assert len(seen) == 5


def test_what_is_private_to_others_is_no_secret_to_find_out(bot: Instance) -> None:
    make_memory(bot, "Bob's secret", visibility="private", owner="bob")
    alice = Scope(bot, Actor(kind="user", name="alice"))
    row = lines({"content": "Bob's secret", "owner": "bob"})
    assert counts(import_file(alice, io.BytesIO(row.encode()))) == {"rows": 1, "created": 1}


def test_whether_a_guess_is_what_a_private_memory_says_is_no_secret_to_find_out_by_its_key(bot: Instance) -> None:
    make_memory(bot, "Bob's secret", key="secret", visibility="private", owner="bob")
    alice = Scope(bot, Actor(kind="user", name="alice"))
    for guess in ("Bob's secret", "Bob has no secret"):
        row = lines({"content": guess, "key": "secret", "owner": "bob"})
        assert counts(import_file(alice, io.BytesIO(row.encode()))) == {"rows": 1, "invalid": 1}


def test_ids_that_are_not_ours_are_made_anew(bot: Instance) -> None:
    wrong = str(uuid7())
    rows = lines(
        {"content": "a", "id": "123e4567-e89b-42d3-a456-426614174000"},
        {"content": "b", "id": wrong, "createdAt": "2020-01-01T00:00:00Z"},
    )
    import_text(bot, rows)
    ids = {str(id) for id in Memory.objects.values_list("id", flat=True)}
    assert wrong not in ids
    assert all(id[14] == "7" for id in ids)
    listed = Memory.objects.filter(instance=bot).order_by("-id").values_list("content", flat=True)
    assert list(listed) == ["a", "b"], "what is older stands behind"


@pytest.mark.parametrize("created", [None, "1960-05-12T00:00:00Z"])
def test_a_memory_from_a_file_is_known_by_its_id_from_then_on(
    bot: Instance, other: Instance, created: str | None
) -> None:
    """Also if the worker began long after the file was uploaded, or if no id can tell when it was made."""
    import_text(bot, lines({"content": "Tea", "createdAt": created}), started=timezone.now() - timedelta(minutes=5))
    memory = Memory.objects.get()
    text = exported(bot)
    change(scope_of(bot), memory.id, MemoryChanges(content="Coffee"))
    assert counts(import_text(bot, text)) == {"rows": 1, "existing": 1}
    import_text(other, text)
    assert find_memory(scope_of(other), memory.id).content == "Tea"


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (known.KNOWN_IDS, "memories_memory_pkey"),
        (known.KNOWN_KEYS, "memory_active_key_once"),
        (known.KNOWN_TEXTS, "memory_same_content"),
    ],
)
def test_what_is_known_is_looked_up_even_in_an_instance_without_statistics(
    bot: Instance, other: Instance, statement: str, index: str
) -> None:
    import_text(bot, lines(*({"content": f"Memory {n}", "key": f"key {n}"} for n in range(300))))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories_memory")
    import_text(other, lines(*({"content": f"Memory {n}", "key": f"key {n}"} for n in range(300))))
    named = {"instance": other.id, "ids": [uuid7()], "keys": ["key 1"], "owners": [""], "hashes": [b"x"]}
    named |= {"reader": None, "started": timezone.now()}
    plan = "\n".join(line for (line,) in known.select("EXPLAIN " + statement, named))
    assert f"using {index} on" in plan
    assert re.search(r"Index Cond: .* <= wanted\.", plan)


def test_the_batches_of_a_file_of_long_rows_are_small(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "BATCH_BYTES", 5_000)
    seen: list[tuple[int, int]] = []
    rows = lines(*({"content": f"{n} " + "x" * 2_000} for n in range(10)))
    report = import_text(bot, rows, progress=lambda report, position: seen.append((report.created, position)))
    assert counts(report) == {"rows": 10, "created": 10}
    assert [created for created, _ in seen] == [3, 6, 9, 10]
    assert seen[-1][1] == len(rows)


def test_a_file_that_cannot_be_stored_is_not_read_to_its_end(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "BATCH", 2)
    file = io.BytesIO(lines(*({"content": f"Memory {n}"} for n in range(10_000))).encode())

    def stop(report: Report, position: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        import_file(scope_of(bot), file, progress=stop)
    assert file.tell() < len(file.getvalue()) // 2
    assert contents(bot) == [], "a batch is stored together with the report that counts it"


# Dry runs and problems


def test_a_dry_run_stores_nothing(bot: Instance) -> None:
    rows = lines({"content": "a"}, {"content": ""}, {"content": "b", "importance": 99})
    report = import_text(bot, rows, dry_run=True)
    assert counts(report) == {"rows": 3, "created": 1, "invalid": 2}
    assert not Memory.objects.exists()
    assert not AuditEntry.objects.filter(action="imported").exists()


EARLIER = {
    "version": 1,
    "content": "x",
    "category": "fact",
    "role": "context",
    "importance": 5,
    "writtenAt": "2026-01-01",
    "replacedAt": "2026-01-02",
}
# The database would refuse these, and with them the whole batch.
OF_ANOTHER_HASH = json.dumps({"content": "x", "vectors": {"model": "m", "byText": {"z" * 64: "A" * 4096}}})
WITH_A_LONG_KEY = json.dumps({"content": "x", "versions": [{**EARLIER, "key": f"{'x' * 180} password=123456"}]})


@pytest.mark.parametrize(
    ("row", "errors"),
    [
        ('{"content": ""}', {"content": ["This may not be empty."]}),
        ('{"contnet": "x"}', {"content": ["This field is required."], "contnet": ["Unknown field."]}),
        ('{"content": "x", "category": "colour"}', None),
        ('{"content": "x", "createdAt": "2999-01-01T00:00:00Z"}', {"createdAt": ["This is in the future."]}),
        ('{"content": "x", "versions": [{"version": 0}]}', None),
        ('{"content": "x", "vectors": {"model": "m", "byText": {"aa": "AAAA"}}}', None),
        (OF_ANOTHER_HASH, None),
        (WITH_A_LONG_KEY, None),
        ('{"content": "x", "visibility": "private"}', {"owner": ["A private memory needs an owner."]}),
        ("{", {"row": ["This is not JSON: Expecting property name enclosed in double quotes."]}),
        ("[1]", {"row": ["This is not an object."]}),
        ("7", {"row": ["This is not an object."]}),
        ("[" * 100_000, None),
    ],
)
def test_problems_by_line(bot: Instance, row: str, errors: dict[str, list[str]] | None) -> None:
    report = import_text(bot, f'{{"content": "good"}}\n\n{row}\n{{"content": "also good"}}\n', "jsonl")
    assert counts(report) == {"rows": 3, "created": 2, "invalid": 1}
    (problem,) = report.problems
    assert problem["line"] == 3
    assert errors is None or problem["errors"] == errors


def test_only_the_first_problems_are_kept(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.transfer.report.PROBLEMS_SHOWN", 3)
    report = import_text(bot, "{\n" * 10, "jsonl")
    assert (report.invalid, [problem["line"] for problem in report.problems]) == (10, [1, 2, 3])


def test_of_a_row_with_very_many_problems_only_the_first_are_kept(bot: Instance) -> None:
    (problem,) = import_text(bot, lines({"content": "Tea", "versions": [{"version": 1}] * 3_000})).problems
    assert len(problem["errors"]) == 10
    assert problem["errors"]["versions.0.content"] == ["This field is required."]


def test_credentials_are_replaced_and_expired_ones_left_out(bot: Instance) -> None:
    rows = lines(
        {"content": "password: hunter22", "versions": []},
        {"content": "Gone", "expiresAt": (datetime.now(UTC) - timedelta(days=1)).isoformat()},
    )
    report = import_text(bot, rows)
    assert (report.redacted, report.left_out) == (1, 1)
    assert "hunter22" not in str(contents(bot))


def test_credentials_are_replaced_in_earlier_versions(bot: Instance) -> None:
    secret = "password: hunter22"
    said = dict.fromkeys(("key", "content", "summary", "reason"), secret)
    version = {**EARLIER, **said, "tags": [secret], "evidence": {secret: secret}}
    import_text(bot, lines({"content": "It was changed", "versions": [version]}))
    (kept,) = MemoryVersion.objects.filter(instance=bot).values()
    assert "hunter22" not in str(kept)
    assert kept["tags"] == ["password: [redacted password]"]


def test_what_has_expired_here_and_is_not_purged_yet_is_not_there_already(bot: Instance) -> None:
    make_memory(bot, "Ann likes tea", key="drink")
    make_memory(bot, "Ann lives in Bern")
    Memory.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    rows = lines({"content": "Ann likes tea", "key": "drink"}, {"content": "Ann lives in Bern"})
    assert counts(import_text(bot, rows, dry_run=True)) == {"rows": 2, "created": 2}
    assert counts(import_text(bot, rows)) == {"rows": 2, "created": 2}
    jobs.purge_all_expired(timestamp=0)
    assert contents(bot) == ["Ann likes tea", "Ann lives in Bern"]


def test_an_empty_file(bot: Instance) -> None:
    for empty in ("", "\n\n", "[]", "content\n"):
        assert counts(import_text(bot, empty)) == {}


def test_who_may_only_read(bot: Instance) -> None:
    with pytest.raises(NotAllowed):
        import_file(Scope(bot, Actor(kind="key", name="reader", read_only=True)), io.BytesIO(b""))
