"""An OpenAI-compatible embeddings API that knows its vectors beforehand, and may ask another one for the rest."""

import json
import os
import urllib.request
from array import array
from base64 import b64decode, b64encode
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import hypot
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

DIMENSIONS = 1536
MODEL = os.environ.get("EMBEDDING_MODEL", "text-embedding-3-small")
BATCH = 128


class EmbeddingServer:
    """Vectors are kept as they are sent, base64 of single precision: nothing is computed while others are measured."""

    def __init__(self, upstream: str = "", key: str = "") -> None:
        self.upstream, self.key = upstream, key
        self.known: dict[str, bytes] = {}
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.embeddings = self
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        Thread(target=self._http.serve_forever, daemon=True).start()

    def learn(self, texts: Sequence[str], vectors: Path) -> None:
        size = 4 * DIMENSIONS
        stored = vectors.read_bytes()
        self.known |= {text: b64encode(stored[n * size : (n + 1) * size]) for n, text in enumerate(texts)}

    def make_up(self, texts: Sequence[str]) -> None:
        """A vector for each, by chance, all different: a few are drawn, the others are those turned round."""
        drawn = [_unit_vector(Random(n)) for n in range(100)]
        for n, text in enumerate(texts):
            vector, turn = drawn[n % 100], n // 100 % DIMENSIONS
            self.known[text] = b64encode((vector[turn:] + vector[:turn]).tobytes())

    def vectors(self, texts: Sequence[str]) -> list[bytes]:
        """In single precision."""
        return [b64decode(vector) for vector in self.encoded(texts)]

    def encoded(self, texts: Sequence[str]) -> list[bytes]:
        unknown = list(dict.fromkeys(text for text in texts if text not in self.known))
        for start in range(0, len(unknown), BATCH):
            part = unknown[start : start + BATCH]
            self.known |= dict(zip(part, self._ask(part), strict=True))
        return [self.known[text] for text in texts]

    def _ask(self, texts: Sequence[str]) -> list[bytes]:
        if not self.upstream:
            raise RuntimeError(f"There is no vector for {texts[0]!r}, and nobody to ask.")
        body = json.dumps({"model": MODEL, "input": texts, "encoding_format": "base64"}).encode()
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.upstream}/embeddings", body, headers)
        with urllib.request.urlopen(request, timeout=300) as answer:
            items = sorted(json.load(answer)["data"], key=lambda item: int(item["index"]))
        return [item["embedding"].encode() for item in items]


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    embeddings: EmbeddingServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that did not want to wait comes again, and then the vectors are known."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: _Http

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        vectors = self.server.embeddings.encoded(asked["input"])
        items = [b'{"object":"embedding","index":%d,"embedding":"%b"}' % item for item in enumerate(vectors)]
        head = {"object": "list", "model": asked["model"], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        content = json.dumps(head).encode()[:-1] + b',"data":[' + b",".join(items) + b"]}"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _unit_vector(random: Random) -> "array[float]":
    numbers = [random.gauss(0, 1) for _ in range(DIMENSIONS)]
    length = hypot(*numbers)
    return array("f", [number / length for number in numbers])
