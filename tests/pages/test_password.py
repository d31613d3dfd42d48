import pytest
from django.test import Client

from accounts.models import AccountEvent, User
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db

NEW = "a rather different one"


def change(client: Client, **values: str):
    return client.post("/password", {"current": PASSWORD, "password": NEW, "again": NEW, **values})


def test_it_works_and_keeps_this_session_only(alice: Client, signed_in) -> None:
    user = User.objects.get(username="alice")
    elsewhere = signed_in(user)

    assert change(alice).url == "/password"

    assert "Your password is changed" in alice.get("/password").content.decode()
    assert elsewhere.get("/password").status_code == 302
    user.refresh_from_db()
    assert user.check_password(NEW)
    event = AccountEvent.objects.get(action="password changed")
    assert (event.actor, event.subject, event.detail) == ("user alice", "alice", {})


def test_a_stranger_signs_in_first(client: Client, db: None) -> None:
    assert client.get("/password").url == "/login?next=/password"
    assert client.post("/password", {}).status_code == 302


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"current": "wrong"}, "This is not your current password."),
        ({"again": "something else"}, "The two new passwords differ."),
        ({"password": "short", "again": "short"}, "at least 10 characters"),
        ({"password": "8319275046113", "again": "8319275046113"}, "entirely numeric"),
        ({"password": "", "again": ""}, "This field is required."),
        ({"password": "a\x00bcdefghijkl", "again": "a\x00bcdefghijkl"}, "Null characters are not allowed."),
    ],
)
def test_bad_input_changes_nothing(alice: Client, values: dict[str, str], says: str) -> None:
    response = change(alice, **values)

    assert response.status_code == 200
    assert says in response.content.decode()
    assert User.objects.get(username="alice").check_password(PASSWORD)
