"""A page says that the database is away or full, in the console's own words, and asks it for nothing more."""

import pytest
from django.db import OperationalError, connection
from django.test import Client

from instances.models import Instance
from tests.api.calling import Caller
from tests.factories import PASSWORD, make_key, make_user

pytestmark = pytest.mark.django_db

FULL = """
CREATE FUNCTION pg_temp.full() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE 'could not extend file "base/secret"' USING ERRCODE = 'disk_full'; END
$$;
CREATE TRIGGER full_disk BEFORE INSERT ON {} EXECUTE FUNCTION pg_temp.full()
"""


def fill_disk_under(table: str) -> None:
    with connection.cursor() as cursor:
        cursor.connection.execute(FULL.format(table), prepare=False)


def test_a_database_that_is_away(alice: Client, support: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise OperationalError("connection to server failed: secret address")

    alice.raise_request_exception = False
    with monkeypatch.context() as patch:
        patch.setattr("memoryconsole.postgres.cursor.QuickCursor.execute", refuse)
        answer = alice.get("/memory?instance=support-bot")
    page = answer.content.decode()
    assert answer.status_code == 503
    assert "The database cannot be reached. Try again in a moment." in page
    assert "Memory Console</title>" in page
    assert "secret" not in page


def test_a_full_disk() -> None:
    make_user("alice")
    fill_disk_under("django_session")
    client = Client(raise_request_exception=False)
    answer = client.post("/login", {"username": "alice", "password": PASSWORD})
    assert answer.status_code == 503
    assert "The disk of the database is full" in answer.content.decode()


def test_a_full_disk_under_the_api(support: Instance) -> None:
    fill_disk_under("memories_memory")
    answer = Caller(make_key(support)).post("/api/v1/memories", {"instanceId": "support-bot", "content": "Tea"})
    assert answer.error == (503, "unavailable")
    assert answer.json["detail"].startswith("The disk of the database is full")


def test_a_standby(support: Instance) -> None:
    """After a failover, until the address leads to the server that takes changes."""
    key = make_key(support)
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
    answer = Caller(key).post("/api/v1/memories", {"instanceId": "support-bot", "content": "Tea"})
    assert answer.error == (503, "unavailable")
    assert answer.json["detail"] == "The database takes no changes just now. Try again in a moment."


def test_a_mistake_of_ours(alice: Client, support: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*args: object, **kwargs: object) -> None:
        raise RuntimeError("the content of a memory")

    monkeypatch.setattr("memoryconsole.postgres.cursor.QuickCursor.execute", explode)
    alice.raise_request_exception = False
    answer = alice.get("/memory?instance=support-bot")
    assert answer.status_code == 500
    assert "Something went wrong on the server. It has been logged." in answer.content.decode()
    assert "the content" not in answer.content.decode()
