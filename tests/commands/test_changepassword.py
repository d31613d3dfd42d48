"""manage.py changepassword"""

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.models import AccountEvent, User
from tests.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db

NEW = "a rather different one"


def type_twice(monkeypatch: pytest.MonkeyPatch, password: str) -> None:
    monkeypatch.setattr("getpass.getpass", lambda prompt="": password)


def lock_out(client: Client, username: str) -> None:
    for _ in range(8):
        client.post("/login", {"username": username, "password": "wrong"})
    assert client.post("/login", {"username": username, "password": PASSWORD}).status_code == 429


def test_the_new_password_can_be_used_at_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    make_user("erin")
    make_user("frank")
    lock_out(client, "erin")
    lock_out(client, "frank")
    type_twice(monkeypatch, NEW)
    call_command("changepassword", "erin")
    assert client.post("/login", {"username": "frank", "password": PASSWORD}).status_code == 429
    assert client.post("/login", {"username": "erin", "password": NEW}).status_code == 302
    event = AccountEvent.objects.get(action="password reset")
    assert (event.actor, event.subject) == ("shell server", "erin")


def test_a_bad_password_changes_nothing(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    make_user("erin")
    lock_out(client, "erin")
    type_twice(monkeypatch, "short")
    with pytest.raises(CommandError, match="after 3 attempts"):
        call_command("changepassword", "erin")
    assert User.objects.get().check_password(PASSWORD)
    assert client.post("/login", {"username": "erin", "password": PASSWORD}).status_code == 429
    assert not AccountEvent.objects.filter(action="password reset").exists()


def test_nobody_of_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    type_twice(monkeypatch, NEW)
    with pytest.raises(CommandError, match="user 'nobody' does not exist"):
        call_command("changepassword", "nobody")
