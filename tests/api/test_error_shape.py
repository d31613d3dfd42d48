"""One error shape, whatever goes wrong and wherever."""

import gzip
import json
import logging

import pytest
from django.db import OperationalError

from accounts.access import Scope
from instances.models import Instance
from memories.draft import MemoryDraft
from memoryconsole.logs import formatter
from tests.api.calling import Answer, Caller, new_client, signed_in
from tests.api.endpoints import CALLS, WITHOUT_INSTANCE, Call, World, populate
from tests.factories import make_key, make_user

SCOPED = pytest.mark.parametrize("call", [call for call in CALLS if call.takes_instance], ids=str)
WITH_BODY = pytest.mark.parametrize("call", [call for call in CALLS + WITHOUT_INSTANCE if call.body], ids=str)
TAKES_BODY = pytest.mark.parametrize(
    "call", [call for call in CALLS + WITHOUT_INSTANCE if call.method in ("POST", "PATCH")], ids=str
)
EVERY = pytest.mark.parametrize("call", CALLS + WITHOUT_INSTANCE, ids=str)


@pytest.fixture
def world(support: Instance) -> World:
    return populate(support)


@SCOPED
def test_missing_instance(call: Call, world: World, api: Caller) -> None:
    path = call.path.split("?")[0]
    bodies = [{}, {"instanceId": None}, {"instanceId": ""}] if call.body else [None]
    for body in bodies:
        answer = api.send(call.method, Call(call.method, path).url(world), body)
        assert answer.status == 400
        assert answer.json == {"detail": "instanceId is required", "code": "instance_id_required"}


@pytest.mark.parametrize("call", [call for call in CALLS if call.body and call.method == "POST"], ids=str)
def test_instance_in_the_query_string_of_a_post(call: Call, world: World, api: Caller) -> None:
    """It is known there from reading, so to call it unknown would be no help."""
    body = {name: value for name, value in call.body(world).items() if name != "instanceId"} if call.body else None
    answer = api.post(f"{call.url(world)}?instanceId=support-bot", body)
    assert answer.errors == {"instanceId": ["Send this in the body, not in the query string."]}


@EVERY
def test_no_key_is_told_how_to_send_one(call: Call, world: World) -> None:
    key = make_key()
    for header in ({}, {"Authorization": key}, {"Authorization": f"Token {key}"}, {"Authorization": "Basic YTpi"}):
        answer = Caller(**header).send(call.method, call.url(world), call.body(world) if call.body else None)
        assert answer.status == 401
        assert "Authorization: Bearer mc_" in answer.json["detail"]


@EVERY
def test_unknown_query_parameter_is_named(call: Call, world: World) -> None:
    caller = signed_in(make_user("ada", superadmin=True))
    url = call.url(world) + ("&" if "?" in call.path else "?") + "serach=x"
    answer = caller.send(call.method, url, call.body(world) if call.body else None)
    assert answer.errors == {"serach": ["Unknown field."]}


@WITH_BODY
def test_unknown_field_is_named(call: Call, world: World) -> None:
    assert call.body
    answer = Caller(make_key()).send(call.method, call.url(world), call.body(world) | {"contnet": 1})
    assert answer.errors == {"contnet": ["Unknown field."]}


TWICE = b'{"instanceId": "support-bot", "instanceId": "sales-bot"}'


@WITH_BODY
def test_body_that_is_not_json(call: Call, world: World) -> None:
    caller = Caller(make_key())
    for raw in (
        b"{",
        b"nonsense",
        b'{"a": NaN}',
        b"\xff\xfe",
        b'{"a": "\xff"}',
        b'{"a": "\\ud800"}',
        b"[" * 100_000,
        TWICE,
    ):
        assert caller.send(call.method, call.url(world), raw=raw).error == (400, "invalid_json"), raw[:20]


@WITH_BODY
def test_body_that_is_no_object(call: Call, world: World) -> None:
    for body in ([], [1], "text", 5):
        answer = Caller(make_key()).send(call.method, call.url(world), body)
        assert answer.errors == {"body": ["Send a JSON object."]}


@WITH_BODY
def test_wrong_content_type(call: Call, world: World) -> None:
    caller = Caller(make_key())
    for type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = caller.send(call.method, call.url(world), raw=b"a=1", type=type)
        assert answer.error == (415, "unsupported_media_type")
        assert "Content-Type: application/json" in answer.json["detail"]


@TAKES_BODY
def test_compressed_body(call: Call, world: World) -> None:
    """Not a mistake in its text: nothing unpacks it, and a file would be kept packed under the name of the other."""
    packed = gzip.compress(json.dumps(call.body(world) if call.body else "A file").encode())
    answer = Caller(make_key(), **{"Content-Encoding": "gzip"}).send(call.method, call.url(world), raw=packed)
    assert answer.error == (415, "unsupported_media_type")
    assert "Content-Encoding" in answer.json["detail"]


@WITH_BODY
def test_too_large(call: Call, world: World, settings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    answer = Caller(make_key()).send(call.method, call.url(world), raw=b'{"a": "' + b"x" * 1000 + b'"}')
    assert answer.error == (413, "too_large")
    assert "1,000 bytes" in answer.json["detail"]


@EVERY
def test_other_methods(call: Call, world: World) -> None:
    for method in ("PUT", "OPTIONS", "TRACE", "BREW"):
        answer = Caller(make_key()).send(method, call.url(world), {})
        assert answer.error == (405, "method_not_allowed")
        assert call.method in answer.headers["Allow"].split(", ")
        assert method not in answer.headers["Allow"]


@EVERY
def test_too_many_requests(call: Call, world: World, settings, one_minute) -> None:
    settings.API_REQUESTS_PER_MINUTE = 0
    answer = Caller(make_key()).send(call.method, call.url(world), call.body(world) if call.body else None)
    assert answer.error == (429, "throttled")
    assert 1 <= int(answer.headers["Retry-After"]) <= 61


@EVERY
def test_database_down(call: Call, world: World, monkeypatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise OperationalError("connection to server failed: secret address")

    caller = Caller(make_key())
    with monkeypatch.context() as patch:
        patch.setattr("memoryconsole.postgres.cursor.QuickCursor.execute", refuse)
        answer = caller.send(call.method, call.url(world), call.body(world) if call.body else None)
    assert answer.error == (503, "unavailable")
    assert "secret" not in str(answer.json)
    assert answer.headers["Retry-After"]


def test_unexpected_error_shows_and_logs_no_content(world: World, api: Caller, monkeypatch, caplog) -> None:
    def explode(scope: Scope, drafts: list[MemoryDraft]) -> None:
        raise RuntimeError(drafts[0].content)

    monkeypatch.setattr("memories.store.links.check", explode)
    with caplog.at_level(logging.ERROR):
        answer = api.post("/api/v1/memories", {"instanceId": "support-bot", "content": "the content of a memory"})
    assert answer.error == (500, "server_error")
    assert "RuntimeError" not in str(answer.json)
    (record,) = (each for each in caplog.records if each.name == "memoryconsole.api")
    logged = formatter().format(record)
    assert "POST /api/v1/memories" in logged
    assert "RuntimeError" in logged
    assert "explode" in logged
    assert "the content of a memory" not in logged


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    "url", ["/api", "/api/", "/api/v1", "/api/v1/", "/api/v1/memory", "/api/v1/memories/", "/api/v2/memories"]
)
def test_unknown_paths_answer_json(method: str, url: str) -> None:
    client = new_client(enforce_csrf_checks=True)
    answer = Answer(client.generic(method, url, b"{}", content_type="application/json"))
    assert answer.error == (404, "not_found")


@pytest.mark.django_db
def test_what_no_view_sees_answers_json_too() -> None:
    """Under a new name the reason is found where it is met, not in a log."""
    answer = Answer(new_client().get("/api/v1/memories", headers={"Host": "console.example"}))
    assert answer.error == (400, "unknown_host")
    assert "ALLOWED_HOSTS" in answer.json["detail"]
    page = new_client().get("/memory", headers={"Host": "console.example"})
    assert (page.status_code, "json" in page.headers["Content-Type"]) == (400, False)
    assert "ALLOWED_HOSTS" in page.content.decode()


def test_error_outside_the_views(api: Caller, monkeypatch) -> None:
    def explode(request: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(
        "django.middleware.common.CommonMiddleware.process_request", lambda self, request: explode(request)
    )
    assert api.get("/api/v1/memories?instanceId=support-bot").error == (500, "server_error")


def test_body_in_chunks(api: Caller) -> None:
    environ = {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
    answer = Answer(
        api.client.post("/api/v1/memories", b"", content_type="application/json", headers=api.headers, **environ)
    )
    assert answer.error == (411, "length_required")


@EVERY
def test_accept_header_does_not_matter(call: Call, world: World) -> None:
    answer = Caller(make_key(), Accept="text/html").send("PUT", call.url(world), {})
    assert answer.error == (405, "method_not_allowed")


def test_repeated_and_broken_query_parameters(api: Caller) -> None:
    answer = api.get("/api/v1/memories?instanceId=support-bot&limit=1&limit=2")
    assert answer.errors == {"limit": ["Send this once."]}
    answer = api.get("/api/v1/memories?instanceId=support-bot&owner=%ff")
    assert answer.errors == {"query": ["The query string is not valid UTF-8."]}


def test_answers_are_not_cached(api: Caller) -> None:
    assert api.get("/api/v1/memories?instanceId=support-bot").headers["Cache-Control"] == "no-store"
