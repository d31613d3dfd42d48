"""How the tests call the API: like a program with a key, or like the console's own pages with a session."""

import functools
import json
from typing import Any

from django.test import Client
from django.test.client import ClientHandler

from accounts.models import User


@functools.cache
def handler(*, enforce_csrf_checks: bool) -> ClientHandler:
    """Shared, because loading the middleware looks at every static file."""
    return ClientHandler(enforce_csrf_checks)


def new_client(*, enforce_csrf_checks: bool = False) -> Client:
    client = Client(raise_request_exception=False)
    client.handler = handler(enforce_csrf_checks=enforce_csrf_checks)
    return client


class Answer:
    def __init__(self, response: Any) -> None:
        self.response = response
        self.status: int = response.status_code
        self.headers = response.headers
        self.body: bytes = b"".join(response.streaming_content) if response.streaming else response.content
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        self.json: Any = json.loads(self.body) if self.body and is_json else None

    @property
    def error(self) -> tuple[int, str]:
        """Status and code of an error, whose shape is checked on the way."""
        assert self.headers["Content-Type"] == "application/json"
        assert isinstance(self.json["detail"], str)
        assert self.json["detail"]
        # A key that is taken is one of many values in bulk, and the only one elsewhere.
        has_errors = self.json["code"] in {"invalid", "taken"} or self._is_of_a_list
        assert ("errors" in self.json) == has_errors, self.json
        return self.status, self.json["code"]

    @property
    def _is_of_a_list(self) -> bool:
        return self.json["code"] == "key_taken" and self.json["detail"].startswith("memories.")

    @property
    def errors(self) -> dict[str, list[str]]:
        """The reasons of a 400, by field."""
        assert self.error == (400, "invalid"), (self.status, self.json)
        errors: dict[str, list[str]] = self.json["errors"]
        return errors


class Caller:
    def __init__(self, key: str = "", client: Client | None = None, **headers: str) -> None:
        self.client = client or new_client()
        self.headers = {"Authorization": f"Bearer {key}"} | headers if key else headers

    def send(
        self, method: str, url: str, body: Any = None, *, raw: bytes | None = None, type: str = "application/json"
    ) -> Answer:
        data = raw if raw is not None else (b"" if body is None else json.dumps(body).encode())
        return Answer(self.client.generic(method, url, data, content_type=type, headers=self.headers))

    def get(self, url: str) -> Answer:
        return self.send("GET", url)

    def post(self, url: str, body: Any) -> Answer:
        return self.send("POST", url, body)

    def patch(self, url: str, body: Any) -> Answer:
        return self.send("PATCH", url, body)

    def delete(self, url: str, body: Any = None) -> Answer:
        return self.send("DELETE", url, body)


def signed_in(user: User, *, with_token: bool = True) -> Caller:
    client = new_client(enforce_csrf_checks=True)
    client.force_login(user)
    token = "a" * 32
    client.cookies["csrftoken"] = token
    return Caller(client=client, **({"X-CSRFToken": token} if with_token else {}))
