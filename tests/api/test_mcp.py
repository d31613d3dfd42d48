"""POST /mcp: the web server's part. Whoever answers behind it is real in `tests/start/test_mcp.py`."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tests.api.calling import Caller, signed_in
from tests.factories import make_user

pytestmark = pytest.mark.django_db


class Backend(BaseHTTPRequestHandler):
    """Answers with what it was sent."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        said = json.dumps({"headers": dict(self.headers), "body": body.decode()}).encode()
        self.send_response(202)
        if body != b"untyped":
            self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def backend(settings: Any) -> Iterator[None]:
    server = HTTPServer(("127.0.0.1", 0), Backend)
    settings.MCP_PORT = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield
    server.shutdown()
    server.server_close()
    thread.join()


def test_what_the_protocol_needs_is_passed_on_and_nothing_else(api, backend):
    api.headers |= {"Mcp-Protocol-Version": "2025-11-25", "Cookie": "sessionid=secret", "Origin": "http://evil.example"}
    answer = api.post("/mcp", {"jsonrpc": "2.0"})
    assert answer.status == 202
    assert answer.json["body"] == '{"jsonrpc": "2.0"}'
    passed = {name.lower(): value for name, value in answer.json["headers"].items()}
    assert passed["authorization"] == api.headers["Authorization"]
    assert passed["mcp-protocol-version"] == "2025-11-25"
    assert passed["host"].startswith("127.0.0.1:")
    assert not {"cookie", "origin"} & set(passed)


def test_an_answer_without_a_type_is_no_page(api, backend):
    assert api.send("POST", "/mcp", raw=b"untyped").headers["Content-Type"] == "text/plain"


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer mc_0123abcd_nonsense"}, {"Authorization": "Basic x"}]
)
def test_a_key_is_needed(backend, headers):
    answer = Caller(**headers).post("/mcp", {})
    assert answer.error[0] == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="memory-console"'


def test_a_session_of_the_console_is_no_key(backend, support):
    assert signed_in(make_user("alice", support)).post("/mcp", {}).error == (401, "not_authenticated")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_there_are_no_streams_and_no_sessions(api, backend, method):
    assert api.send(method, "/mcp").error == (405, "method_not_allowed")


def test_what_does_not_reach_it_answers_json_too(api, backend):
    """A host of agents shows what it is answered: a page would be shown as its source."""
    assert api.post("/mcp/", {}).error == (404, "not_found")
    api.headers |= {"Host": "evil.example"}
    assert api.post("/mcp", {}).error == (400, "unknown_host")


def test_the_limit_is_the_one_of_the_api(api, backend, settings, one_minute):
    settings.API_REQUESTS_PER_MINUTE = 1
    assert api.get("/api/v1/memories?instanceId=support-bot").status == 200
    refused = api.post("/mcp", {})
    assert refused.error == (429, "throttled")
    assert int(refused.headers["Retry-After"]) > 0


def test_nobody_behind_it_is_said(api, settings):
    settings.MCP_PORT = 0
    assert api.post("/mcp", {}).error == (503, "unavailable")
    settings.MCP_PORT = 1
    answer = api.post("/mcp", {})
    assert answer.error == (503, "unavailable")
    assert answer.json["detail"] == "The MCP server does not answer. Try again in a moment."
