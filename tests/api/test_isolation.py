"""Every endpoint × everybody who must not have access."""

import uuid

import pytest

from accounts.access import SHELL
from accounts.keys import key_presented, revoke_key
from conversations.models import Conversation, Message
from instances.models import Instance
from memories.models import Attachment, Memory, MemoryVersion, Procedure
from tests.api.calling import Caller, signed_in
from tests.api.endpoints import CALLS, KINDS, WITHOUT_INSTANCE, Call, World, populate
from tests.factories import make_key, make_user

EACH = pytest.mark.parametrize("call", CALLS, ids=str)
EVERY = pytest.mark.parametrize("call", CALLS + WITHOUT_INSTANCE, ids=str)


@pytest.fixture
def world(support: Instance) -> World:
    return populate(support)


@pytest.fixture
def foreign(sales: Instance) -> World:
    return populate(sales)


def state() -> list[object]:
    return [
        sorted(Instance.objects.values_list("slug", "name")),
        sorted(Memory.objects.values_list("id", "content", "pinned")),
        MemoryVersion.objects.count(),
        Conversation.objects.count(),
        Message.objects.count(),
        Attachment.objects.count(),
        sorted(Procedure.objects.values_list("id", "name", "trigger", "usage_count")),
    ]


def send(caller: Caller, call: Call, world: World):
    return caller.send(call.method, call.url(world), call.body(world) if call.body else None)


@EVERY
def test_works(call: Call, world: World) -> None:
    caller = signed_in(make_user("ada", superadmin=True)) if call.for_superadmins else Caller(make_key())
    assert send(caller, call, world).status == call.status


@EACH
def test_stranger_with_a_key_gets_404_and_changes_nothing(call: Call, world: World, sales: Instance) -> None:
    before = state()
    answer = send(Caller(make_key(sales)), call, world)
    assert answer.error == (404, "not_found")
    assert answer.json["detail"] == "Not found."
    assert state() == before


@EACH
def test_stranger_with_a_session_gets_404(call: Call, world: World, sales: Instance) -> None:
    answer = send(signed_in(make_user("eve", sales)), call, world)
    assert answer.error == (404, "not_found")


@EACH
def test_absent_malformed_and_foreign_instances_are_the_same(call: Call, world: World, sales: Instance) -> None:
    caller = Caller(make_key(sales))
    foreign_answer = send(caller, call, world)
    for slug in ["no-such-bot", "Not A Slug", "%00", "..", "support-bot%0A", "🐘", "x" * 300]:
        path = call.path.replace("{slug}", slug)
        body = call.body(world) | {"instanceId": slug} if call.body and call.takes_instance else None
        if call.body and "{slug}" in call.path:
            body = call.body(world)
        elsewhere = Call(call.method, path)
        answer = caller.send(call.method, elsewhere.url(world), body)
        if slug != "..":  # the client resolves it
            assert (answer.status, answer.json) == (404, foreign_answer.json), slug


BY_ID = [call for call in CALLS if any(f"{{{kind}}}" in call.path for kind in KINDS)]


@pytest.mark.parametrize("call", BY_ID, ids=str)
@pytest.mark.parametrize("other", ["foreign", "absent", "malformed"])
def test_ids_of_another_instance_are_404(call: Call, other: str, world: World, foreign: World) -> None:
    path = call.path
    for kind in KINDS:
        ids = {"foreign": getattr(foreign, kind).id, "absent": uuid.uuid4(), "malformed": "not-an-id"}
        path = path.replace(f"{{{kind}}}", str(ids[other]))
    before = state()
    answer = send(Caller(make_key()), Call(call.method, path, call.body), world)
    assert answer.error == (404, "not_found")
    assert "in this instance" in answer.json["detail"]
    assert state() == before


@EVERY
def test_revoked_key_gets_401(call: Call, world: World) -> None:
    whole = make_key(world.instance)
    key = key_presented(whole)
    assert key
    revoke_key(SHELL, str(key.id))
    before = state()
    answer = send(Caller(whole), call, world)
    assert answer.error == (401, "invalid_key")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert state() == before


@EVERY
def test_nobody_gets_401(call: Call, world: World) -> None:
    answer = send(Caller(), call, world)
    assert answer.error == (401, "not_authenticated")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@EVERY
def test_wrong_authorization_header_gets_401(call: Call, world: World) -> None:
    for header in ("Bearer", "Bearer mc_00000000_nothing", "Basic YTpi", "Bearer é", "mc_1_2", "Bearer mc_\x00_x"):
        assert send(Caller(Authorization=header), call, world).error == (401, "invalid_key"), header


@EVERY
def test_a_session_does_not_help_a_wrong_key(call: Call, world: World) -> None:
    before = state()
    caller = signed_in(make_user("ada", superadmin=True))
    caller.headers["Authorization"] = "Bearer mc_00000000_nothing"
    assert send(caller, call, world).error == (401, "invalid_key")
    assert state() == before


def test_a_program_gets_no_cookie_and_the_same_protection(api: Caller, world: World) -> None:
    answer = api.get(f"/api/v1/memories?instanceId={world.slug}")
    assert not answer.response.cookies
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("call", [call for call in CALLS + WITHOUT_INSTANCE if call.writes], ids=str)
def test_read_only_key_may_not_write(call: Call, world: World) -> None:
    before = state()
    answer = send(Caller(make_key(read_only=True)), call, world)
    assert answer.status == 403
    assert answer.error[1] in {"read_only", "not_allowed"}
    assert state() == before


@pytest.mark.parametrize("call", [call for call in CALLS + WITHOUT_INSTANCE if not call.writes], ids=str)
def test_read_only_key_may_read(call: Call, world: World) -> None:
    assert send(Caller(make_key(world.instance, read_only=True)), call, world).status == 200


@pytest.mark.parametrize("call", [call for call in CALLS + WITHOUT_INSTANCE if call.needs_token], ids=str)
def test_session_without_csrf_token_may_not_write(call: Call, world: World) -> None:
    before = state()
    answer = send(signed_in(make_user("ada", superadmin=True), with_token=False), call, world)
    assert answer.error == (403, "permission_denied")
    assert "CSRF" in answer.json["detail"]
    assert state() == before


@EVERY
def test_session_with_csrf_token_works(call: Call, world: World) -> None:
    assert send(signed_in(make_user("ada", superadmin=True)), call, world).status == call.status


@EACH
def test_member_works(call: Call, world: World, sales: Instance) -> None:
    answer = send(signed_in(make_user("bob", world.instance)), call, world)
    assert answer.status == (403 if call.for_superadmins else call.status)


def test_list_of_instances_is_the_callers_own(world: World, sales: Instance) -> None:
    for caller in (Caller(make_key(world.instance)), signed_in(make_user("bob", world.instance))):
        answer = caller.get("/api/v1/instances")
        assert [instance["slug"] for instance in answer.json["instances"]] == ["support-bot"]
        assert answer.json["total"] == 1


def test_only_those_who_reach_all_instances_may_create_one(world: World) -> None:
    for caller in (Caller(make_key(world.instance)), signed_in(make_user("bob", world.instance))):
        assert caller.post("/api/v1/instances", {"slug": "new-bot"}).error == (403, "not_allowed")
    assert not Instance.objects.filter(slug="new-bot").exists()


def test_private_memories_of_others_are_absent_for_a_member(world: World) -> None:
    scope_owner, other = make_user("bob", world.instance), make_user("eve", world.instance)
    key = Caller(make_key(world.instance))
    secret = {"instanceId": world.slug, "content": "Bob's", "visibility": "private", "owner": "bob"}
    id = key.post("/api/v1/memories", secret).json["memory"]["id"]
    own = signed_in(scope_owner).get(f"/api/v1/memories/{id}?instanceId={world.slug}")
    assert own.status == 200
    eve = signed_in(other)
    assert eve.get(f"/api/v1/memories/{id}?instanceId={world.slug}").error == (404, "not_found")
    listed = eve.get(f"/api/v1/memories?instanceId={world.slug}").json
    assert id not in [memory["id"] for memory in listed["memories"]]
    assert listed["total"] == 2
    assert eve.post("/api/v1/memories/bulk-delete", {"instanceId": world.slug, "ids": [id]}).status == 404
    assert Memory.objects.filter(id=id).exists()
