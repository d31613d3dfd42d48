"""After any kind of deletion, the text is gone from all tables, queued jobs, files and statistics.

A word that exists nowhere else is written into all texts of a memory. Then every column of every table of the database
is searched for it, and every file of the storage.
"""

import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.access import Scope
from instances.models import Instance
from instances.store import delete_instance
from memories.deletion import delete_matching, delete_memories, delete_memory
from memories.draft import MemoryChanges, MemoryDraft
from memories.embedding.backfill import ask_for_embedding, embed_pending
from memories.filters import Filters
from memories.forgetting import forget
from memories.jobs import purge_all_expired
from memories.models import Attachment, Memory, Recall
from memories.procedures.store import ProcedureDraft, create_procedure
from memories.recall.golden import GoldenDraft, save_golden
from memories.recall.recalling import RecallRequest, recall
from memories.search.word_frequencies import count_words
from memories.store import change, restore, save
from memories.transfer.uploads import keep_upload
from memoryconsole.inputs import read
from tests.factories import make_conversation, make_instance, make_memories, make_memory, scope_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("storage")]

MARK = "qzvxkwb"
ALICE = f"alice-{MARK}"

TABLES = """
SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
"""
BYTES = """
SELECT format('%I.%I', table_schema, table_name), format('%I', column_name) FROM information_schema.columns
WHERE data_type = 'bytea' AND table_schema NOT IN ('pg_catalog', 'information_schema')
"""
STATISTICS = """
SELECT tablename, attname FROM pg_stats
WHERE concat(most_common_vals::text, histogram_bounds::text, most_common_elems::text) ILIKE %s
"""


def rows(statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)
        return cursor.fetchall()


def places(mark: str = MARK) -> list[str]:
    """Where the word is found. A row as text contains all its columns, but binary ones in hexadecimal."""
    found = [table for (table,) in rows(TABLES) if rows(f"SELECT FROM {table} t WHERE t::text ILIKE %s", f"%{mark}%")]
    for table, column in rows(BYTES):
        if rows(f"SELECT FROM {table} WHERE position(%s::bytea IN {column}) > 0", mark.encode()):
            found.append(f"{table}.{column}")
    found += [f"statistics of {table}.{column}" for table, column in rows(STATISTICS, f"%{mark}%")]
    files = [path for path in settings.MEDIA_ROOT.rglob("*") if path.is_file()]
    return sorted(found + [str(path) for path in files if mark in path.name or mark.encode() in path.read_bytes()])


@pytest.fixture
def bot() -> Instance:
    neighbour = make_instance()
    make_memory(neighbour, tags=["tea"], owner="bob")
    make_conversation(neighbour, "Hello", userId="bob")
    return make_instance(embedder="offline")


@pytest.fixture
def memory(bot: Instance, storage: Path) -> Memory:
    """A memory that contains the word in every possible place, and others that do not."""
    scope = scope_of(bot)
    make_memories(bot, 3)
    fields = {
        "content": f"It says {MARK}. " * 200,
        "summary": MARK,
        "key": f"key-{MARK}",
        "tags": [MARK],
        "owner": ALICE,
        "channel": MARK,
        "source": MARK,
        "evidence": {"domains": [MARK]},
    }
    first = save(scope, read(MemoryDraft, fields)).memory
    change(scope, first.id, MemoryChanges(content=f"Now it says {MARK} again", supersede_reason=f"because of {MARK}"))
    restore(scope, first.id, 1)
    second = save(scope, read(MemoryDraft, {**fields, "dedupe": "create", "supersedeReason": MARK})).memory
    change(scope, first.id, MemoryChanges(expires_at=timezone.now() + timedelta(days=1)))
    for number, each in enumerate((first, second)):
        (storage / f"{number}").write_text(f"A file about {MARK}")
        Attachment.objects.create(
            instance=bot, memory_id=each.id, name=f"{MARK}.txt", content_type="text/plain", size=1, sha256=b"",
            path=str(number), created_at=timezone.now(),
        )  # fmt: skip
    ask_for_embedding(scope)
    embed_pending(scope)
    for _ in range(2):
        assert MARK in recall(scope, RecallRequest(query="What does it say?")).context
    count_words(scope)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return second


def ids(bot: Instance) -> list[Any]:
    return list(Memory.objects.filter(instance=bot, owner=ALICE).values_list("id", flat=True))


def one_by_one(scope: Scope) -> None:
    for id in ids(scope.instance):
        delete_memory(scope, id)


def when_expired(scope: Scope) -> None:
    Memory.objects.filter(owner=ALICE).update(expires_at=timezone.now() - timedelta(seconds=1))
    purge_all_expired(timestamp=0)


WAYS: dict[str, Callable[[Scope], object]] = {
    "one by one": one_by_one,
    "by ids": lambda scope: delete_memories(scope, ids(scope.instance)),
    "by filter": lambda scope: delete_matching(scope, Filters(owner=ALICE, include_superseded=True), expected=2),
    "when expired": when_expired,
    "forgetting its owner": lambda scope: forget(scope, ALICE),
    "with its instance": delete_instance,
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_left(way: str, bot: Instance, memory: Memory, django_capture_on_commit_callbacks: Any) -> None:
    assert len(places()) > 8, places()
    with django_capture_on_commit_callbacks(execute=True):
        WAYS[way](scope_of(bot))
    if way != "forgetting its owner":  # the planner's statistics are made again by PostgreSQL in its own time
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    assert places() == []
    if way != "with its instance":
        assert Memory.objects.filter(instance=bot).count() == 3
        assert Recall.objects.filter(instance=bot).count() == 2


def test_nothing_is_left_of_what_was_said(bot: Instance, django_capture_on_commit_callbacks: Any) -> None:
    talk = make_conversation(bot, f"My cat is {MARK}", userId=ALICE, title=MARK, externalId=MARK, channel=MARK)
    make_memory(bot, f"There is a cat called {MARK}", sourceConversationId=str(talk.id))
    Recall.objects.create(
        instance=bot, owner=ALICE, query=f"Who is {MARK}?", search_mode="keyword", created_at=timezone.now()
    )
    save_golden(scope_of(bot), GoldenDraft(query=f"What is {MARK}?", user_id=ALICE))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    with django_capture_on_commit_callbacks(execute=True):
        forget(scope_of(bot), ALICE)
    assert places() == []


def test_nothing_is_left_of_an_instance(bot: Instance, django_capture_on_commit_callbacks: Any) -> None:
    scope = scope_of(bot)
    make_conversation(bot, f"My cat is {MARK}", userId=ALICE)
    create_procedure(scope, read(ProcedureDraft, {"name": MARK, "trigger": MARK, "steps": [MARK]}))
    keep_upload(scope, io.BytesIO(f'{{"content": "{MARK}"}}'.encode()), name="x", format=None, dry_run=True)
    assert len(places()) > 3
    with django_capture_on_commit_callbacks(execute=True):
        delete_instance(scope)
    assert places() == []


def test_free_texts_leave_no_samples_in_the_statistics(bot: Instance, memory: Memory) -> None:
    """Samples would survive a deletion until the next ANALYZE, and the planner does not need them."""
    found = [place for place in places() if place.startswith("statistics")]
    texts = (".content", ".summary", ".about", "reason", ".query", ".explanation", ".evidence", ".word")
    assert [place for place in found if place.endswith(texts)] == []


def test_the_scan_finds_what_is_there(storage: Path) -> None:
    assert places() == []
    (storage / "deep").mkdir()
    (storage / "deep" / "file").write_bytes(b"\x00" + MARK.encode())
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE hiding (a bytea, b jsonb, c text[], d tsvector)")
        cursor.execute("INSERT INTO hiding (a) VALUES (%s)", [MARK.encode()])
    assert places() == [f"{storage}/deep/file", "public.hiding.a"]
    for column, value in {"b": f'{{"x": ["{MARK}"]}}', "c": f"{{{MARK}}}", "d": f"'{MARK}':1"}.items():
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM hiding")
            cursor.execute(f"INSERT INTO hiding ({column}) VALUES (%s)", [value])
        assert "public.hiding" in places(), column
