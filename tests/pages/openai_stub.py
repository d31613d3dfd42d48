"""Just enough of the OpenAI API to ask it whether a key is right."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

GOOD_KEY = "sk-good-0123456789-abcd"
ANSWERS = {GOOD_KEY: 200, "sk-poor-0123456789-abcd": 429, "sk-shut-0123456789-abcd": 403}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        status = ANSWERS.get(key, 401) if self.path == "/v1/models" else 404
        body = {"object": "list", "data": []} if status == 200 else {"error": {"message": "no", "type": "invalid"}}
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def openai_stub() -> Iterator[str]:
    """The base URL of a server that lives as long as the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
