"""An OpenAI-compatible API on this machine, so that tests exercise the real client: embeddings, models, chat, Azure.

Anything that can go wrong goes wrong on demand, and every request is kept.

    with OpenAIServer() as server:
        settings.OPENAI_BASE_URL = server.url
        server.fail("rate_limited", times=2, retry_after="1")

As a program of its own, `python -m tests.openai_server --port 8089`; POST what `fail` or `script` take, as JSON, to
`/_fail` or `/_script`, and read the requests from `/_requests` and the number of random faults from `/_faults`.
"""

import argparse
import json
import random
import re
import socket
import struct
import time
from base64 import b64encode
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.openai_answers import DIMENSIONS, POISONS, chat_answer, plain_answer, poisoned, vector_of, what_is_wrong

GOOD_KEY = "sk-good-0123456789-abcd"
# Keys that begin so are answered so; every other key is right.
KEYS = {"": 401, "sk-wrong": 401, "sk-poor": 429, "sk-shut": 403}
STATUSES = {
    **{"refused": 400, "unauthorized": 401, "forbidden": 403, "not_found": 404},
    **{"rate_limited": 429, "server_error": 500},
}
FAULTS = (*STATUSES, *POISONS, "quota", "hang", "slow", "drip", "reset", "bad_json", "cut_off", "html", "nonsense",
          "babble")  # fmt: skip
# What a language model that is not well does, now and then.
MOODS = ("server_error", "rate_limited", "reset", "bad_json", "html", "nonsense", "slow", "babble")


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, list[str]]
    key: str
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        given = self.body.get("input", [])
        return [given] if isinstance(given, str) else given


@dataclass
class Fault:
    name: str = ""
    times: int | None = None
    retry_after: str = ""
    seconds: float = 60.0


@dataclass
class Sometimes:
    part: float = 0.0
    names: tuple[str, ...] = ()
    path: str = ""
    chance: random.Random = field(default_factory=random.Random)
    count: int = 0

    def next_fault(self, path: str) -> Fault:
        if not path.endswith(self.path) or self.chance.random() >= self.part:
            return Fault()
        self.count += 1
        return Fault(self.chance.choice(self.names), seconds=0.2)


@dataclass
class OpenAIServer:
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    latency: float = 0.0
    knows_base64: bool = True
    """Many servers that speak like OpenAI's answer with lists of numbers, whatever was asked for."""

    def __post_init__(self) -> None:
        self._lock = Lock()
        self._faults: deque[Fault] = deque()
        self._sometimes = Sometimes()
        self._script: deque[Any] = deque()
        self._meanwhile: deque[Callable[[], object]] = deque()
        self._refused = ""
        self.stopping = Event()
        self._http = _Http(("127.0.0.1", self.port), _Handler)
        self._http.openai = self
        self.port = self._http.server_port

    @property
    def url(self) -> str:
        """For OPENAI_BASE_URL."""
        return f"{self.endpoint}/v1"

    @property
    def endpoint(self) -> str:
        """For AZURE_OPENAI_ENDPOINT."""
        return f"http://127.0.0.1:{self.port}"

    def fail_sometimes(self, part: float, *names: str, path: str = "", seed: int = 0) -> None:
        """From now on, this part of the requests to paths that end so, each with one of these faults."""
        assert set(names) <= set(FAULTS), names
        self._sometimes = Sometimes(part, names, path, random.Random(seed))

    def fail(
        self, name: str, times: int | None = None, *, after: int = 0, retry_after: str = "", seconds: float = 60.0
    ) -> None:
        """From now on, or for so many requests, `after` some that go well; faults with a number queue up."""
        assert name in FAULTS, name
        with self._lock:
            if after:
                self._faults.append(Fault(times=after))
            self._faults.append(Fault(name, times, retry_after, seconds))

    def refuse(self, word: str) -> None:
        """From now on, to embed any text that contains this word, and whatever is sent along with it."""
        self._refused = word

    def meanwhile(self, happens: Callable[[], object], times: int = 1) -> None:
        """While the next so many requests wait for their answers; in a thread of the server."""
        with self._lock:
            self._meanwhile.extend([happens] * times)

    def recover(self) -> None:
        with self._lock:
            self._refused = ""
            self._faults.clear()
            self._sometimes = Sometimes()

    def script(self, *answers: Any) -> None:
        """The next answers of the chat, in order; what is not a string is sent as JSON."""
        with self._lock:
            self._script.extend(answers)

    def embedded(self) -> list[str]:
        """Every text a vector was asked for, in order."""
        return [text for request in self.requests if request.path.endswith("/embeddings") for text in request.texts]

    def next_fault(self, path: str = "") -> Fault:
        with self._lock:
            if not self._faults:
                return self._sometimes.next_fault(path)
            fault = self._faults[0]
            if fault.times is not None:
                fault.times -= 1
                if fault.times == 0:
                    self._faults.popleft()
            return fault

    def next_meanwhile(self) -> Callable[[], object]:
        with self._lock:
            return self._meanwhile.popleft() if self._meanwhile else lambda: None

    def refuses(self, texts: list[str]) -> bool:
        return bool(self._refused) and any(self._refused in text for text in texts)

    def next_chat(self, body: dict[str, Any]) -> str:
        with self._lock:
            answer = self._script.popleft() if self._script else plain_answer(body)
        return answer if isinstance(answer, str) else json.dumps(answer)

    @property
    def faults_so_far(self) -> int:
        """Of those that happen sometimes."""
        return self._sometimes.count

    def chats(self) -> list[dict[str, Any]]:
        """What the language model was asked, in order."""
        return [request.body for request in self.requests if request.path.endswith("/chat/completions")]

    def serve(self) -> None:
        self._http.serve_forever(poll_interval=0.02)

    def __enter__(self) -> Self:
        Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    openai: OpenAIServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: _Http

    def do_GET(self) -> None:
        self.answer({})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.answer(json.loads(raw or b"{}"))

    def answer(self, body: dict[str, Any]) -> None:
        path = urlsplit(self.path).path
        if path.startswith("/_"):
            self.send_json(200, self.control(path, body))
            return
        key = self.headers.get("api-key") or self.headers.get("Authorization", "").removeprefix("Bearer ")
        query = parse_qs(urlsplit(self.path).query)
        self.server.openai.requests.append(Request(self.command, path, query, key, body))
        time.sleep(self.server.openai.latency)
        self.server.openai.next_meanwhile()()
        status = KEYS.get(key[:8].rstrip("-"), 200)
        if status != 200:
            self.send_problem(status)
            return
        self.answer_with(path, body, self.server.openai.next_fault(path))

    def control(self, path: str, body: dict[str, Any]) -> Any:
        openai = self.server.openai
        if path == "/_fail":
            openai.recover()
            if body:
                openai.fail(**body)
        elif path == "/_script":
            openai.script(*body["answers"])
        elif path == "/_faults":
            return {"faults": openai.faults_so_far, "chats": len(openai.chats())}
        return [asdict(request) for request in openai.requests] if path == "/_requests" else {}

    def answer_with(self, path: str, body: dict[str, Any], fault: Fault) -> None:
        if fault.name in STATUSES:
            self.send_problem(STATUSES[fault.name], fault)
        elif fault.name == "quota":
            self.send_problem(429, fault, "insufficient_quota")
        elif fault.name in ("hang", "slow"):
            self.server.openai.stopping.wait(fault.seconds)
            # Closing what was answered on would look like a server that is gone to whoever uses the connection again.
            self.close_connection = fault.name == "hang"
            if fault.name == "slow":
                self.answer_with(path, body, Fault())
        elif fault.name == "reset":
            # Closing with linger 0 sends a reset instead of an orderly goodbye.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
        elif fault.name == "drip":
            self.drip(fault.seconds)
        elif fault.name in ("bad_json", "cut_off", "html", "nonsense"):
            self.send_garbage(fault.name)
        else:
            self.answer_well(path, body, fault.name)

    def answer_well(self, path: str, body: dict[str, Any], poison: str) -> None:
        if path == "/v1/models":
            self.send_json(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in DIMENSIONS]})
        elif path.endswith("/chat/completions"):
            said = "I would rather not." if poison == "babble" else self.server.openai.next_chat(body)
            self.send_json(200, chat_answer(said, body))
        elif path == "/v1/embeddings":
            self.send_embeddings(body, body["model"], poison)
        elif found := re.fullmatch(r"/openai/deployments/([^/]+)/embeddings", path):
            large = "text-embedding-3-large" if "3-large" in found[1] else "text-embedding-ada-002"
            self.send_embeddings(body, large, poison)
        else:
            self.send_problem(404)

    def send_embeddings(self, body: dict[str, Any], model: str, poison: str) -> None:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        wrong = "content_refused" if self.server.openai.refuses(texts) else what_is_wrong(texts, body, model)
        if wrong:
            self.send_problem(400, code=wrong)
            return
        full = DIMENSIONS.get(model) or int(re.sub(r".*?(\d*)$", r"\1", model) or 384)
        vectors = [vector_of(text, body.get("dimensions", full)) for text in texts]
        items = poisoned(poison, [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)])
        if body.get("encoding_format") == "base64" and self.server.openai.knows_base64 and poison != "words":
            for item in items:
                numbers = item["embedding"]
                item["embedding"] = b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
        if poison == "garbled":
            items[0]["embedding"] = str(items[0]["embedding"])[:-3]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        self.send_json(200, {"object": "list", "model": model, "data": items, "usage": usage})

    def send_problem(self, status: int, fault: Fault | None = None, code: str = "no") -> None:
        headers = {"Retry-After": fault.retry_after} if fault and fault.retry_after else {}
        self.send_json(status, {"error": {"message": "no", "type": "invalid", "code": code}}, headers)

    def send_garbage(self, name: str) -> None:
        body = {
            "bad_json": b'{"object": "list", "data": [{"embed',
            "cut_off": b'{"object": "list"',
            "html": b"<html>Hello</html>",
            "nonsense": b'{"data": [null, 7, {"embedding": {"a": 1}}]}',
        }[name]
        kind = "text/html" if name == "html" else "application/json"
        self.send_body(200, body, {"Content-Type": kind}, length=len(body) + 999 * (name == "cut_off"))
        self.close_connection = name == "cut_off"

    def drip(self, seconds: float) -> None:
        """A byte now and then: no single read of the client ever times out."""
        self.send_body(200, b"", {"Content-Type": "application/json"}, length=10_000)
        for _ in repeat(None, int(seconds / 0.05)):
            self.wfile.write(b" ")
            self.wfile.flush()
            if self.server.openai.stopping.wait(0.05):
                break
        self.close_connection = True

    def send_json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(value).encode()
        self.send_body(status, content, {"Content-Type": "application/json", **(headers or {})}, len(content))

    def send_body(self, status: int, content: bytes, headers: dict[str, str], length: int) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--fail", choices=FAULTS, help="what goes wrong from the start")
    parser.add_argument("--moody", type=float, default=0.0, help="the part of the language model's answers that fail")
    options = parser.parse_args()
    server = OpenAIServer(port=options.port, latency=options.latency)
    if options.moody:
        server.fail_sometimes(options.moody, *MOODS, path="/chat/completions")
    if options.fail:
        server.fail(options.fail)
    print(server.url, flush=True)
    server.serve()


if __name__ == "__main__":
    main()
