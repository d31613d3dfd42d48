"""POST /api/v1/jobs, GET /api/v1/jobs/{id}"""

from typing import Any

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob

from accounts.access import Actor, Scope
from instances.models import Instance
from memories import jobs
from memories.asking import Unavailable
from memories.embedding import embedder
from memories.models import Job, Memory
from memoryconsole.ids import uuid7
from tests.api.calling import Answer, Caller, signed_in
from tests.factories import make_key, make_memories, make_user
from tests.openai_server import OpenAIServer


@pytest.fixture(autouse=True)
def asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "ATTEMPTS", 1)


def start(api: Caller, **fields: Any) -> Answer:
    return api.post("/api/v1/jobs", {"instanceId": "support-bot", "kind": "embed-memories", **fields})


def look(api: Caller, id: str) -> Answer:
    return api.get(f"/api/v1/jobs/{id}?instanceId=support-bot")


def work() -> None:
    """What the worker does with the job that was queued last."""
    queued = ProcrastinateJob.objects.filter(task_name="embed_memories").latest("id")
    jobs.embed_memories(**queued.args)


def test_from_queued_to_done(api: Caller, support: Instance, openai: OpenAIServer) -> None:
    make_memories(support, 3)
    answer = start(api)
    assert answer.status == 202
    job = answer.json["job"]
    assert {name: job[name] for name in job if name not in ("id", "createdAt")} == {
        "instanceId": "support-bot",
        "kind": "embed-memories",
        "state": "queued",
        "done": 0,
        "total": 3,
        "attempts": 0,
        "tokens": 0,
        "error": None,
        "conversationId": None,
        "payload": {},
        "result": {},
        "startedAt": None,
        "finishedAt": None,
    }
    assert look(api, job["id"]).json == answer.json
    work()
    done = look(api, job["id"]).json["job"]
    assert (done["state"], done["done"], done["total"], done["error"]) == ("done", 3, 3, None)
    assert done["finishedAt"] >= done["startedAt"] >= done["createdAt"] == job["createdAt"]
    assert done["attempts"] == 1
    assert set(Memory.objects.values_list("embedding", flat=True)) == {"ready"}


def test_a_limit(api: Caller, support: Instance, openai: OpenAIServer) -> None:
    make_memories(support, 3)
    job = start(api, payload={"limit": 2}).json["job"]
    assert (job["total"], job["payload"]) == (2, {"limit": 2})
    work()
    assert look(api, job["id"]).json["job"]["done"] == 2
    assert Memory.objects.filter(embedding="ready").count() == 2


def test_while_the_api_is_down(api: Caller, support: Instance, openai: OpenAIServer) -> None:
    make_memories(support, 1)
    id = start(api).json["job"]["id"]
    openai.fail("server_error")
    with pytest.raises(Unavailable):
        work()
    waiting = look(api, id).json["job"]
    assert (waiting["state"], waiting["error"]) == ("queued", "The embeddings API failed with status 500.")
    openai.recover()
    work()
    assert look(api, id).json["job"]["state"] == "done"


def test_without_a_key(api: Caller, support: Instance) -> None:
    make_memories(support, 1)
    id = start(api).json["job"]["id"]
    work()
    job = look(api, id).json["job"]
    assert job["state"] == "failed"
    assert job["error"].startswith("No OpenAI or Azure key reaches this instance")


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({"kind": "coffee"}, "kind", "“coffee” is not known. Choose one of: 'embed-memories' or 'find-duplicates'."),
        ({"kind": None}, "kind", "Choose one of: 'embed-memories' or 'find-duplicates'."),
        ({"kind": 7}, "kind", "Choose one of: 'embed-memories' or 'find-duplicates'."),
        ({"payload": {"limit": 0}}, "payload.limit", "Must be at least 1."),
        ({"payload": {"limit": 10**12}}, "payload.limit", "Must be at most 2147483647."),
        ({"payload": {"limit": "some"}}, "payload.limit", "Enter a whole number."),
        ({"payload": {"limit": True}}, "payload.limit", "Enter a number."),
        ({"payload": {"threshold": 0.9}}, "payload", "embed-memories takes limit only."),
        ({"kind": "find-duplicates", "payload": {"limit": 3}}, "payload", "find-duplicates takes threshold only."),
        ({"kind": "find-duplicates", "payload": {"threshold": 1.1}}, "payload.threshold", "Must be at most 1."),
        ({"payload": {"most": 3}}, "payload.most", "Unknown field."),
        ({"payload": []}, "payload", "Send an object."),
        ({"when": "now"}, "when", "Unknown field."),
    ],
)
def test_bad_input(api: Caller, support: Instance, fields: dict[str, Any], field: str, reason: str) -> None:
    assert start(api, **fields).errors == {field: [reason]}
    assert not Job.objects.exists()
    queued = ProcrastinateJob.objects.filter(task_name="embed_memories", args__instance_id=str(support.id))
    assert not queued.exists()


@pytest.mark.parametrize("kind", ["embed-memories", "find-duplicates"])
def test_the_payload_that_is_described_as_the_default_is_taken(api: Caller, kind: str) -> None:
    described = api.get("/api/schema").json["components"]["schemas"]["JobDraft"]["properties"]["payload"]["default"]
    assert described == {"limit": None, "threshold": None}
    assert start(api, kind=kind, payload=described).status == 202


def test_the_kind_and_the_instance_are_needed(api: Caller) -> None:
    assert api.post("/api/v1/jobs", {"instanceId": "support-bot"}).errors == {"kind": ["This field is required."]}
    assert api.post("/api/v1/jobs", {"kind": "embed-memories"}).error == (400, "instance_id_required")


def test_who_may_only_read(support: Instance, api: Caller) -> None:
    reader = Caller(make_key(support, read_only=True))
    assert start(reader).error == (403, "read_only")
    assert not Job.objects.exists()
    assert look(reader, start(api).json["job"]["id"]).status == 200


def test_strangers(api: Caller, support: Instance, sales: Instance) -> None:
    id = start(api).json["job"]["id"]
    stranger = Caller(make_key(sales))
    assert start(stranger).error == (404, "not_found")
    assert look(stranger, id).error == (404, "not_found")
    assert stranger.get(f"/api/v1/jobs/{id}?instanceId=sales-bot").error == (404, "not_found")
    for wrong in (str(uuid7()), "nonsense", "%00"):
        assert look(api, wrong).error == (404, "not_found")


def test_a_person_in_the_console(support: Instance) -> None:
    alice = signed_in(make_user("alice", support))
    assert start(alice).status == 202
    assert Job.objects.get().actor == "user alice"


def test_only_what_the_instance_owns_is_counted(support: Instance, sales: Instance, api: Caller) -> None:
    make_memories(sales, 4)
    make_memories(support, 2)
    assert start(api).json["job"]["total"] == 2
    assert Scope(support, Actor(kind="job", name="x")).private_memories_of is None
