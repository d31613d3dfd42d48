"""A page says that the database is away or full, or that no file can be kept, in the console's own words."""

from errno import ECONNRESET, ENOSPC
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, connection
from django.test import Client

from instances.models import Instance
from memoryconsole.api import as_problem
from tests.api.calling import Caller
from tests.factories import PASSWORD, make_key, make_memory, make_user

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


def test_a_standby(alice: Client, support: Instance) -> None:
    """After a failover, until the address leads to the server that takes changes."""
    make_memory(support, "Ann likes tea")
    api = Caller(make_key(support))
    with connection.cursor() as cursor:
        # What the rows above point to would be looked up at the end, and held.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET TRANSACTION READ ONLY")
    assert api.get("/api/v1/memories?instanceId=support-bot&search=tea").json["total"] == 1
    assert "Ann likes tea" in alice.get("/memory?instance=support-bot").content.decode()
    answer = api.post("/api/v1/memories", {"instanceId": "support-bot", "content": "Tea"})
    assert answer.error == (503, "unavailable")
    assert answer.json["detail"] == "The database takes no changes just now. Try again in a moment."


def test_a_data_directory_that_may_not_be_written_to(alice: Client, support: Instance, settings: Any) -> None:
    # Not even root makes a directory there.
    settings.MEDIA_ROOT = "/sys/attachments"
    alice.raise_request_exception = False
    answer = alice.post("/memory/import?instance=support-bot", {"file": SimpleUploadedFile("tea.jsonl", b"{}")})
    assert answer.status_code == 503
    assert "somebody has to make the data directory writable" in answer.content.decode()
    refused = Caller(make_key(support)).send(
        "POST", "/api/v1/import?instanceId=support-bot", raw=b"{}", type="text/csv"
    )
    assert refused.error == (503, "unavailable")


def test_a_full_disk_under_files() -> None:
    problem = as_problem(OSError(ENOSPC, "No space left on device", "/secret/path"))
    assert problem is not None
    assert (problem.status, problem.detail.partition(":")[0]) == (503, "The disk for files is full")
    assert as_problem(ConnectionResetError(ECONNRESET, "reset")) is None


def test_a_mistake_of_ours(alice: Client, support: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*args: object, **kwargs: object) -> None:
        raise RuntimeError("the content of a memory")

    monkeypatch.setattr("memoryconsole.postgres.cursor.QuickCursor.execute", explode)
    alice.raise_request_exception = False
    answer = alice.get("/memory?instance=support-bot")
    assert answer.status_code == 500
    assert "Something went wrong on the server. It has been logged." in answer.content.decode()
    assert "the content" not in answer.content.decode()
