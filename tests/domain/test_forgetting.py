"""Forgetting a person: everything of theirs is deleted, and nothing of others."""

import io
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

from accounts.access import Actor, actor_of_user
from conversations.models import Conversation, Message
from instances.models import Instance
from memories import forgetting
from memories.draft import MemoryChanges
from memories.embedding.backfill import embed_pending
from memories.forgetting import Counts, forget, forgotten_at, preview
from memories.models import (
    Attachment,
    AuditEntry,
    Chunk,
    Embedding,
    GoldenMark,
    GoldenQuery,
    Job,
    Memory,
    MemoryVersion,
    Recall,
)
from memories.recall.golden import GoldenDraft, save_golden
from memories.recall.log import account_in
from memories.recall.recalling import RecallRequest, recall
from memories.recall.replay import replay
from memories.store import change
from memories.traces import count_mentions, count_owned
from memories.transfer import importing
from memories.transfer.report import Report
from memories.transfer.uploads import confirm, keep_upload, start
from memoryconsole.errors import Conflict, NotAllowed
from tests.domain.transferring import counts, import_text, lines
from tests.factories import make_conversation, make_instance, make_memory, make_user, scope_of

pytestmark = pytest.mark.django_db

ALICE = "alice-7f3a@example.org"
NOTHING = Counts(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


@pytest.fixture
def bot() -> Instance:
    return make_instance(embedder="offline")


def make_recall(instance: Instance, **fields: Any) -> Recall:
    return Recall.objects.create(instance=instance, search_mode="hybrid", created_at=timezone.now(), **fields)


def fill(bot: Instance, storage: Path) -> None:
    """Data of every kind that belongs to Alice."""
    talk = make_conversation(bot, "My cat is Tom", "Noted", userId=ALICE, externalId=f"chat-{ALICE}")
    message = Message.objects.filter(instance=bot, conversation_id=talk.id).first()
    assert message
    own = make_memory(bot, "She likes tea", owner=ALICE, visibility="private", key="drink")
    change(scope_of(bot), own.id, MemoryChanges(content="She likes coffee"))
    make_memory(bot, "There is a cat", sourceConversationId=str(talk.id))
    make_memory(bot, "The cat is called Tom", sourceMessageIds=[str(message.id)])
    make_memory(bot, "Long past", owner=ALICE, expiresAt="2020-01-01T00:00:00Z")
    (storage / "file").write_text(ALICE)
    Attachment.objects.create(
        instance=bot, memory_id=own.id, name="f", content_type="text/plain", size=1, sha256=b"", path="file",
        created_at=timezone.now(),
    )  # fmt: skip
    make_recall(bot, owner=ALICE, query="What does she drink?", memory_ids=[own.id])
    make_recall(bot, conversation_id=talk.id, query="And the cat?")
    save_golden(scope_of(bot), GoldenDraft(query="Her drink?", user_id=ALICE, expected=[own.id]))
    Job.objects.create(
        instance=bot, kind="extract-memories", actor="x", conversation_id=talk.id, created_at=timezone.now()
    )
    Job.objects.create(
        instance=bot, kind="extract", actor="x", payload={"for": [{"userId": ALICE}]}, created_at=timezone.now()
    )
    task = app.configure_task("use_language")
    task.defer(instance_id=str(bot.id), conversation_id=str(talk.id))
    embed_pending(scope_of(bot))


def test_everything_of_hers_goes(bot: Instance, storage: Path, django_capture_on_commit_callbacks: Any) -> None:
    fill(bot, storage)
    scope = scope_of(bot)
    found = preview(scope, ALICE)
    assert found == Counts(
        memories=4, versions=1, chunks=5, embeddings=4, attachments=1, conversations=1, messages=2, recalls=2, golden=1,
        jobs=3,
    )  # fmt: skip
    with django_capture_on_commit_callbacks(execute=True):
        done = forget(scope, ALICE)
    assert (done.counts, done.left, done.mentioned) == (found, 0, {})
    of_memories = (Memory, MemoryVersion, Chunk, Embedding, Attachment)
    for model in (*of_memories, Conversation, Message, Recall, GoldenQuery, GoldenMark, Job):
        assert not model.objects.filter(instance=bot).exists(), model
    assert not ProcrastinateJob.objects.filter(task_name="use_language").exists()
    assert list(storage.iterdir()) == []


def test_nothing_of_anybody_else_goes(bot: Instance, storage: Path) -> None:
    other = make_instance()
    theirs = [make_memory(other, owner=ALICE), make_memory(bot, owner="bob"), make_memory(bot)]
    alices, bobs = make_conversation(bot, "Hi", userId=ALICE), make_conversation(bot, "Ho", userId="bob")
    said = {message.conversation_id: str(message.id) for message in Message.objects.filter(instance=bot)}
    # One learnt from Alice that belongs to Bob, and three learnt from both that have no owner.
    theirs += [
        make_memory(bot, owner="bob", sourceConversationId=str(alices.id)),
        make_memory(bot, sourceMessageIds=[said[alices.id], said[bobs.id]]),
        make_memory(bot, sourceConversationId=str(bobs.id), sourceMessageIds=[said[alices.id]]),
        make_memory(bot, sourceConversationId=str(alices.id), sourceMessageIds=[said[alices.id], said[bobs.id]]),
    ]
    recall = make_recall(bot, owner="bob", query="?")
    elsewhere = make_conversation(other, "Hi", userId=ALICE)
    done = forget(scope_of(bot), ALICE)
    assert (done.counts.memories, done.counts.conversations) == (0, 1)
    assert set(Memory.objects.values_list("id", flat=True)) == {memory.id for memory in theirs}
    assert set(Conversation.objects.values_list("id", flat=True)) == {bobs.id, elsewhere.id}
    assert Recall.objects.get() == recall
    of_bob, of_both, in_bobs, in_alices = theirs[3:]
    for memory in theirs[3:]:
        memory.refresh_from_db()
    assert of_bob.source_conversation_id is None
    assert [str(id) for id in of_both.source_message_ids] == [said[bobs.id]]
    assert in_bobs.source_message_ids == []
    assert (in_alices.source_conversation_id, in_alices.source_message_ids) == (None, of_both.source_message_ids)


def test_golden_queries_asked_for_her_go_with_their_marks(bot: Instance) -> None:
    scope, tea, other = scope_of(bot), make_memory(bot, "Tea"), make_instance()
    for owner in (ALICE, "bob", ""):
        save_golden(scope, GoldenDraft(query=f"A drink for {owner}?", user_id=owner, expected=[tea.id]))
    save_golden(scope, GoldenDraft(query=f"What does {ALICE} drink?", expected=[tea.id]))
    save_golden(scope_of(other), GoldenDraft(query="A drink?", user_id=ALICE))
    assert preview(scope, ALICE).golden == 1
    done = forget(scope, ALICE)
    assert (done.counts.golden, done.left, done.mentioned) == (1, 0, {"golden": 1})
    kept = GoldenQuery.objects.filter(instance=bot).order_by("id")
    assert [row.owner for row in kept] == ["bob", "", ""]
    assert set(GoldenMark.objects.values_list("golden_id", flat=True)) == {row.id for row in kept}
    assert GoldenQuery.objects.filter(instance=other).count() == 1


def test_recalls_for_others_say_nothing_of_her(bot: Instance) -> None:
    make_memory(bot, "Alice likes oolong", owner=ALICE)
    recalled = recall(scope_of(bot), RecallRequest(query="oolong", user_id="bob"))
    assert "oolong" in recalled.context
    row = Recall.objects.get(id=recalled.id)
    assert "likes" not in f"{row.explanation}", "a log of ids and numbers"
    forget(scope_of(bot), ALICE)
    assert "oolong" not in replay(scope_of(bot), account_in(Recall.objects.get(id=row.id))).context


def test_the_log_keeps_no_name(bot: Instance) -> None:
    memory = make_memory(bot, owner=ALICE)
    scope = scope_of(bot)
    assert forgotten_at(scope, ALICE) is None
    forget(scope, ALICE)
    entry = AuditEntry.objects.get(instance=bot, action="forgotten")
    assert entry.memory_ids == [memory.id]
    assert entry.detail["memories"] == 1
    assert ALICE not in str(list(AuditEntry.objects.values()))
    assert forgotten_at(scope, ALICE) == entry.created_at
    assert forgotten_at(scope, "bob") is None
    assert forgetting.fingerprint(scope, ALICE) != forgetting.fingerprint(scope_of(make_instance()), ALICE)


def test_again_is_no_mistake(bot: Instance) -> None:
    make_memory(bot, owner=ALICE)
    forget(scope_of(bot), ALICE)
    assert forget(scope_of(bot), ALICE).counts == NOTHING
    assert AuditEntry.objects.filter(action="forgotten").count() == 1


def test_a_file_from_before_does_not_bring_her_back(bot: Instance, storage: Path) -> None:
    make_memory(bot, owner=ALICE)
    scope, file = scope_of(bot), lines({"content": "Alice likes tea", "owner": ALICE}, {"content": "Tea is hot"})
    upload = keep_upload(scope, io.BytesIO(file.encode()), name="x", format=None, dry_run=True, may_confirm=True)
    job = start(scope, upload)
    assert job.payload["report"]["created"] == 2
    forget(scope, ALICE)
    report = confirm(scope, job.id).payload["report"]
    assert report["created"] == 1
    assert report["problems"] == [
        {"line": 1, "errors": {"owner": ["This person was forgotten after the file was handed in."]}}
    ]
    assert list(Memory.objects.values_list("content", flat=True)) == ["Tea is hot"]
    assert counts(import_text(bot, file)) == {"rows": 2, "created": 1, "existing": 1}, "a file from after it may"


def test_nor_does_an_import_that_is_going_on(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "BATCH", 1)
    file = lines({"content": "Alice likes tea", "owner": ALICE}, {"content": "Alice is here", "owner": ALICE})

    def forget_at_once(report: Report, position: int) -> None:
        if report.rows == 1:
            forget(scope_of(bot), ALICE)

    assert counts(import_text(bot, file, progress=forget_at_once)) == {"rows": 2, "created": 1, "invalid": 1}
    assert not Memory.objects.exists()


def test_others_who_mention_her_are_counted_not_removed(bot: Instance) -> None:
    make_memory(bot, owner="ann")
    make_memory(bot, "Bob met Ann on Monday; ann@x too")
    make_memory(bot, "Annabel is somebody else")
    make_memory(bot, "Tagged", tags=["ann"])
    make_conversation(bot, "Where is ANN?", userId="bob")
    done = forget(scope_of(bot), "ann")
    assert (done.counts.memories, done.left) == (1, 0)
    assert done.mentioned == {"memories": 2, "messages": 1}


@pytest.mark.parametrize("owner", ["a.b", "a+b", "(", "[x]", "%", "\\d", "x'y", '"', "張偉", "ß", "a|b"])
def test_an_id_is_taken_literally(bot: Instance, owner: str) -> None:
    make_memory(bot, owner=owner)
    make_memory(bot, "axb stays, so do 1 and ab", owner="other")
    done = forget(scope_of(bot), owner)
    assert (done.counts.memories, done.left, done.mentioned) == (1, 0, {})
    assert Memory.objects.get(instance=bot).owner == "other"


def test_a_memory_that_was_once_hers_does_not_name_her_any_more(bot: Instance) -> None:
    memory = make_memory(bot, "Likes tea", owner=ALICE)
    change(scope_of(bot), memory.id, MemoryChanges(content="Likes coffee", owner="bob"))
    assert Chunk.objects.filter(instance=bot, who=ALICE).exists()
    forget(scope_of(bot), ALICE)
    assert not Chunk.objects.filter(instance=bot, who=ALICE).exists()


def test_all_or_nothing(bot: Instance, storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(bot, storage)

    def fail(*args: object, **detail: object) -> None:
        raise RuntimeError("no space left")

    before = preview(scope_of(bot), ALICE)
    with monkeypatch.context() as patch:
        patch.setattr("memories.audit.record", fail)
        with pytest.raises(RuntimeError):
            forget(scope_of(bot), ALICE)
    assert preview(scope_of(bot), ALICE) == before
    assert (storage / "file").exists()


def test_another_number_than_expected_forgets_nothing(bot: Instance) -> None:
    make_memory(bot, owner=ALICE)
    with pytest.raises(Conflict) as problem:
        forget(scope_of(bot), ALICE, expected={"memories": 2})
    assert problem.value.code == "stale_expectation"
    assert problem.value.extra["found"]["memories"] == 1
    assert Memory.objects.filter(instance=bot).count() == 1
    assert forget(scope_of(bot), ALICE, expected={"memories": 1}).counts.memories == 1


def test_who_may(bot: Instance) -> None:
    make_memory(bot, owner="alice")
    member = scope_of(bot, actor_of_user(make_user("alice", bot)))
    for action in (preview, forget):
        with pytest.raises(NotAllowed):
            action(member, "alice")
    reader = scope_of(bot, Actor(kind="key", name="reader", all_instances=True, read_only=True))
    assert preview(reader, "alice").memories == 1
    with pytest.raises(NotAllowed):
        forget(reader, "alice")
    assert forget(scope_of(bot, actor_of_user(make_user(superadmin=True))), "alice").counts.memories == 1


def test_every_table_with_an_owner_is_looked_at(bot: Instance) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE memories_later (instance_id uuid, owner text, note jsonb, names text[])")
        cursor.execute("INSERT INTO memories_later VALUES (%s, %s, '{}', '{}')", [bot.id, ALICE])
        cursor.execute("INSERT INTO memories_later VALUES (%s, '', %s, '{}')", [bot.id, f'{{"a": ["{ALICE}"]}}'])
        cursor.execute("INSERT INTO memories_later VALUES (%s, '', '{}', %s)", [bot.id, ["x", ALICE]])
    assert count_owned(scope_of(bot), ALICE) == {"memories_later": 1}
    assert count_mentions(scope_of(bot), ALICE) == {"memories_later": 3}
    assert count_mentions(scope_of(make_instance()), ALICE) == {}
