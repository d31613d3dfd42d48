"""Writing to something that is being deleted at the same time answers 404, as it would a moment later."""

from pathlib import Path

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob

from accounts.access import Actor, Scope
from conversations.models import Conversation
from instances.models import Instance
from instances.store import delete_instance
from memories import jobs
from memories.transfer import uploads
from memoryconsole.errors import NotFound
from tests.api.calling import Answer, Caller, signed_in
from tests.domain.looking import files, while_writing
from tests.factories import make_conversation, make_instance, make_key, make_memory, make_user

pytestmark = pytest.mark.django_db(transaction=True)

ADMIN = Actor(kind="user", name="admin", is_superadmin=True, all_instances=True)


@pytest.fixture
def bot(transactional_db: None) -> Instance:
    return make_instance("support-bot")


def answer_to(bot: Instance, method: str, path: str, body: dict[str, object]) -> Answer:
    caller = Caller(make_key(bot))
    found: Answer = while_writing(
        lambda: delete_instance(Scope(bot, ADMIN)),
        lambda: caller.send(method, f"/api/v1/{path}", {"instanceId": "support-bot", **body}),
    )
    return found


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("memories", {"content": "Tea"}),
        ("memories", {"content": "Tea", "key": "drink"}),
        ("memories/bulk", {"memories": [{"content": "Tea"}, {"content": "Milk"}]}),
        ("conversations", {}),
        ("conversations", {"externalId": "chat-1"}),
        ("procedures", {"name": "Brew", "trigger": "tea", "steps": ["Boil"]}),
        ("jobs", {"kind": "embed-memories"}),
    ],
)
def test_new_things(bot: Instance, path: str, body: dict[str, object]) -> None:
    assert answer_to(bot, "POST", path, body).error == (404, "not_found")


def test_a_message(bot: Instance) -> None:
    conversation = make_conversation(bot)
    body: dict[str, object] = {"messages": [{"role": "user", "content": "Hello"}]}
    assert answer_to(bot, "POST", f"conversations/{conversation.id}/messages", body).error == (404, "not_found")


def test_a_change(bot: Instance) -> None:
    memory = make_memory(bot, "Tea")
    assert answer_to(bot, "PATCH", f"memories/{memory.id}", {"content": "Milk"}).error == (404, "not_found")


def test_a_recall_is_answered(bot: Instance) -> None:
    make_memory(bot, "Tea")
    assert answer_to(bot, "POST", "recall", {"query": "tea"}).status == 200


def test_an_import(bot: Instance, storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "AT_ONCE", 1)
    caller, url = Caller(make_key(bot)), "/api/v1/import?instanceId=support-bot"
    assert caller.send("POST", url, raw=b'{"content": "Tea"}', type="application/x-ndjson").status == 202
    queued = ProcrastinateJob.objects.get(task_name="import_memories")
    while_writing(lambda: delete_instance(Scope(bot, ADMIN)), lambda: jobs.import_memories(**queued.args))
    assert files(storage) == []


def test_a_form(bot: Instance) -> None:
    caller = signed_in(make_user("alice", bot))
    form = {"content": "Tea", "category": "fact", "role": "context", "importance": "5", "confidence": "1"}
    response = while_writing(
        lambda: delete_instance(Scope(bot, ADMIN)),
        lambda: caller.client.post("/memory/new?instance=support-bot", form, headers=caller.headers),
    )
    assert response.status_code == 404
    assert "What this belongs to has been deleted in the meantime." in response.content.decode()


def test_a_conversation_that_is_deleted_while_it_is_opened_again_is_a_new_one(bot: Instance) -> None:
    caller, body = Caller(make_key(bot)), {"instanceId": "support-bot", "externalId": "chat-1"}
    first = caller.post("/api/v1/conversations", body).json["conversation"]["id"]
    answer = while_writing(
        lambda: Conversation.objects.filter(external_id="chat-1").delete(),
        lambda: caller.post("/api/v1/conversations", body),
    )
    assert answer.status == 201
    assert answer.json["conversation"]["id"] != first


def test_what_is_being_written_goes_with_its_instance(bot: Instance) -> None:
    """Deleting waits for the write, and deletes its result too."""
    make_memory(bot, "Tea")
    counts = while_writing(lambda: make_memory(bot, "Milk"), delete_instance, Scope(bot, ADMIN))
    assert counts["memories"] == 2
    assert not Instance.objects.exists()


def test_an_instance_is_deleted_once(bot: Instance) -> None:
    with pytest.raises(NotFound):
        while_writing(lambda: delete_instance(Scope(bot, ADMIN)), delete_instance, Scope(bot, ADMIN))
