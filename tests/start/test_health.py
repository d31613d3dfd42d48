"""/healthz and /readyz."""

import pytest
from django.db import OperationalError, connection

from memoryconsole import health

READY = ["database", "migrations", "worker"]


def beat(seconds_ago: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_workers")
        cursor.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - make_interval(secs => %s))",
            [seconds_ago],
        )


@pytest.mark.django_db
def test_healthz_asks_nobody(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})
    assert "no-store" in response["Cache-Control"]


@pytest.mark.django_db
def test_whoever_asks_by_address_is_answered(client):
    """As load balancers and orchestrators do; pages and the API are there under their own names only."""
    by_address = {"Host": "10.1.2.3:8000"}
    assert client.get("/healthz", headers=by_address).status_code == 200
    assert "database" in client.get("/readyz", headers=by_address).json()["checks"]
    assert client.get("/login", headers=by_address).status_code == 400
    assert client.get("/api/v1/memories", headers=by_address).status_code == 400


def test_only_reading(client):
    strict = client.__class__(enforce_csrf_checks=True)
    assert [strict.post(path).status_code for path in ("/healthz", "/readyz")] == [405, 405]


@pytest.mark.django_db
def test_ready_when_everything_is_there(client):
    beat(seconds_ago=2)
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response.json()["status"] == "ready"
    assert {name: check["ok"] for name, check in response.json()["checks"].items()} == dict.fromkeys(READY, True)


@pytest.mark.django_db
@pytest.mark.parametrize(("seconds_ago", "said"), [(31, "last seen"), (3600, "last seen")])
def test_not_ready_when_the_worker_is_silent(client, seconds_ago, said):
    beat(seconds_ago)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["database"]["ok"] is True
    assert said in response.json()["checks"]["worker"]["message"]


@pytest.mark.django_db
def test_not_ready_without_a_worker(client):
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["worker"] == {"ok": False, "message": "No worker is running."}


@pytest.mark.django_db
def test_not_ready_when_a_migration_is_missing(client):
    beat(seconds_ago=0)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'sessions'")
    response = client.get("/readyz")
    assert response.status_code == 503
    assert "sessions.0001_initial" in response.json()["checks"]["migrations"]["message"]


def test_not_ready_without_a_database_and_says_no_more_than_that(client, monkeypatch):
    def refuse() -> None:
        raise OperationalError("connection to server on socket /secret/place failed")

    monkeypatch.setattr(health.connection, "cursor", refuse)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json() == {
        "status": "not ready",
        "checks": {"database": {"ok": False, "message": "The database cannot be reached."}},
    }


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_only_reading_is_allowed(client, path):
    assert client.post(path).status_code == 405


@pytest.mark.django_db
def test_not_ready_when_a_newer_version_has_changed_the_database(client):
    beat(seconds_ago=2)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('memories', '9000_later', now())")
        cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('gone', '0001_initial', now())")
    response = client.get("/readyz")
    assert response.status_code == 503
    assert "memories.9000_later" in response.json()["checks"]["migrations"]["message"]
