"""An OpenAI-compatible embeddings API that answers with prepared vectors and asks another API for all others."""

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
    """Keeps vectors as base64 of single-precision numbers, ready to send, so that answers take hardly any time."""

    def __init__(self, upstream: str = "", key: str = "") -> None:
        self.upstream, self.key = upstream, key
        self.vector_of: dict[str, bytes] = {}
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.embeddings = self
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        Thread(target=self._http.serve_forever, daemon=True).start()

    def load(self, texts: Sequence[str], vectors: Path) -> None:
        """Read the vectors of these texts from a file."""
        size = 4 * DIMENSIONS
        stored = vectors.read_bytes()
        self.vector_of |= {text: b64encode(stored[n * size : (n + 1) * size]) for n, text in enumerate(texts)}

    def make_up(self, texts: Sequence[str]) -> None:
        """Give each text a random vector of its own: a hundred are drawn, the others are rotations of these."""
        drawn = [_unit_vector(Random(n)) for n in range(100)]
        for n, text in enumerate(texts):
            vector, shift = drawn[n % 100], n // 100 % DIMENSIONS
            self.vector_of[text] = b64encode((vector[shift:] + vector[:shift]).tobytes())

    def vectors(self, texts: Sequence[str]) -> list[bytes]:
        """The vectors as bytes of single-precision numbers."""
        return [b64decode(vector) for vector in self.encoded(texts)]

    def encoded(self, texts: Sequence[str]) -> list[bytes]:
        unknown = list(dict.fromkeys(text for text in texts if text not in self.vector_of))
        for start in range(0, len(unknown), BATCH):
            part = unknown[start : start + BATCH]
            self.vector_of |= dict(zip(part, self._request(part), strict=True))
        return [self.vector_of[text] for text in texts]

    def _request(self, texts: Sequence[str]) -> list[bytes]:
        if not self.upstream:
            raise RuntimeError(f"There is no vector for {texts[0]!r}, and no other API to ask.")
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
        """Ignored: a caller that timed out asks again, and then the vectors are there."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: _Http

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        vectors = self.server.embeddings.encoded(request["input"])
        items = [b'{"object":"embedding","index":%d,"embedding":"%b"}' % item for item in enumerate(vectors)]
        head = {"object": "list", "model": request["model"], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
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
