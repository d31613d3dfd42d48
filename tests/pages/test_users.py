import re
from uuid import uuid4

import pytest
from django.test import Client

from accounts.models import AccountEvent, Membership, User
from instances.models import Instance
from tests.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db


def make(client: Client, **values: object):
    return client.post("/users/new", {"username": "dora", "password": "quite a long one", **values})


def test_the_list_shows_who_may_do_what(superadmin: Client, alice: Client, support: Instance) -> None:
    page = superadmin.get("/users").content.decode()

    assert "root" in page
    assert "Superadmin" in page
    assert "support-bot" in page


def test_the_list_costs_the_same_for_many(superadmin: Client, support: Instance, django_assert_max_num_queries) -> None:
    for _ in range(5):
        make_user("", support)
    with django_assert_max_num_queries(6):
        superadmin.get("/users")


def test_a_new_user_can_sign_in(superadmin: Client, support: Instance, client: Client) -> None:
    response = make(superadmin, members=["support-bot"], read_team=["support-bot"])

    assert response.url == "/users"
    membership = Membership.objects.get(user__username="dora")
    assert (membership.instance, membership.read_team, membership.read_org) == (support, True, False)
    assert client.post("/login", {"username": "dora", "password": "quite a long one"}).status_code == 302
    event = AccountEvent.objects.get(action="user created")
    assert (event.actor, event.subject) == ("user root", "dora")
    assert event.detail == {"superadmin": False, "instances": ["support-bot"]}


def test_a_password_that_was_made_is_shown_once(superadmin: Client, client: Client) -> None:
    response = make(superadmin, password="")

    assert response.status_code == 200
    assert "no-store" in response.headers["Cache-Control"]
    found = re.search(r'id="shown-password" value="([^"]+)"', response.content.decode())
    assert found
    assert client.post("/login", {"username": "dora", "password": found[1]}).status_code == 302
    assert found[1] not in superadmin.get("/users").content.decode()


def test_reading_further_counts_only_for_members(superadmin: Client, support: Instance) -> None:
    page = make(superadmin, read_org=["support-bot"]).content.decode()
    assert "Only a member of support-bot reads further there" in page
    assert not User.objects.filter(username="dora").exists()
    assert not Membership.objects.exists()


def test_a_membership_ends_with_what_it_let_read(superadmin: Client, alice: Client, support: Instance) -> None:
    Membership.objects.update(read_team=True)
    person = User.objects.get(username="alice")
    superadmin.post(f"/users/{person.id}", {"is_active": "on", "read_team": ["support-bot"]})
    assert not Membership.objects.filter(user=person).exists()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"username": ""}, "This field is required."),
        ({"username": "root"}, "A user with this name exists already."),
        ({"username": "has space"}, "Enter a valid username."),
        ({"username": "a" * 151}, "at most 150 characters"),
        ({"username": "a\x00b"}, "Null characters are not allowed."),
        ({"password": "short"}, "at least 10 characters"),
        ({"members": ["no-such-bot"]}, "no-such-bot is not one of the available choices"),
    ],
)
def test_bad_input_makes_nobody(superadmin: Client, values: dict[str, object], says: str) -> None:
    response = make(superadmin, **values)

    assert response.status_code == 200
    assert says in response.content.decode()
    assert User.objects.count() == 1


def test_what_is_wrong_with_name_and_password_is_said_together(superadmin: Client) -> None:
    page = make(superadmin, username="has space", password="short").content.decode()
    assert "Enter a valid username." in page
    assert "at least 10 characters" in page


def test_a_password_is_asked_for_again_where_something_else_was_wrong(superadmin: Client) -> None:
    """Its field comes back empty, and an empty one has a password made that nobody asked for."""
    again = "Enter it again: it is not kept while something else is put right."
    assert again in make(superadmin, username="has space").content.decode()
    assert again not in make(superadmin, username="has space", password="").content.decode()


def test_what_a_user_may_do_can_be_changed(
    superadmin: Client, alice: Client, support: Instance, sales: Instance
) -> None:
    user = User.objects.get(username="alice")
    assert "support-bot" in superadmin.get(f"/users/{user.id}").content.decode()

    values = {"is_active": "on", "members": ["sales-bot"], "read_org": ["sales-bot"]}
    assert superadmin.post(f"/users/{user.id}", values).url == "/users"

    membership = Membership.objects.get(user=user)
    assert (membership.instance, membership.read_team, membership.read_org) == (sales, False, True)
    assert alice.get("/conversations?instance=support-bot").status_code == 404
    assert AccountEvent.objects.get(action="user changed").detail["read_org"] == ["sales-bot"]


def test_switching_somebody_off_ends_their_session(superadmin: Client, alice: Client) -> None:
    user = User.objects.get(username="alice")
    superadmin.post(f"/users/{user.id}", {"members": ["support-bot"]})
    assert alice.get("/keys").status_code == 302


@pytest.mark.parametrize("values", [{"is_active": "on"}, {"is_superadmin": "on"}, {}])
def test_nobody_locks_themselves_out(superadmin: Client, values: dict[str, str]) -> None:
    make_user("another", superadmin=True)
    user = User.objects.get(username="root")

    response = superadmin.post(f"/users/{user.id}", values)

    assert "You cannot lock yourself out" in response.content.decode()
    user.refresh_from_db()
    assert user.is_superadmin
    assert user.is_active


def test_another_superadmin_can_be_made_a_user(superadmin: Client) -> None:
    other = make_user("another", superadmin=True)
    superadmin.post(f"/users/{other.id}", {"is_active": "on"})
    other.refresh_from_db()
    assert not other.is_superadmin


def test_a_password_can_be_reset(superadmin: Client, alice: Client, client: Client) -> None:
    user = User.objects.get(username="alice")

    response = superadmin.post(f"/users/{user.id}/password", {"password": ""})

    found = re.search(r'id="shown-password" value="([^"]+)"', response.content.decode())
    assert found
    assert "no-store" in response.headers["Cache-Control"]
    assert alice.get("/keys").status_code == 302
    assert client.post("/login", {"username": "alice", "password": found[1]}).status_code == 302
    assert AccountEvent.objects.filter(action="password reset", subject="alice").exists()


def test_a_new_password_opens_what_wrong_ones_have_locked(superadmin: Client, client: Client) -> None:
    user, other = make_user("Erin"), make_user("frank")
    for username in ("Erin", "frank"):
        for _ in range(8):
            client.post("/login", {"username": username, "password": "wrong"})
    assert client.post("/login", {"username": "Erin", "password": PASSWORD}).status_code == 429

    superadmin.post(f"/users/{user.id}/password", {"password": "quite a long one"})

    assert client.post("/login", {"username": other.username, "password": PASSWORD}).status_code == 429
    assert client.post("/login", {"username": "Erin", "password": "quite a long one"}).status_code == 302


def test_a_bad_new_password_changes_nothing(superadmin: Client, alice: Client) -> None:
    user = User.objects.get(username="alice")
    response = superadmin.post(f"/users/{user.id}/password", {"password": "short"})
    assert "at least 10 characters" in response.content.decode()
    user.refresh_from_db()
    assert user.check_password(PASSWORD)


def test_one_s_own_password_needs_the_old_one(superadmin: Client) -> None:
    user = User.objects.get(username="root")
    assert superadmin.post(f"/users/{user.id}/password", {"password": "quite a long one"}).url == "/password"


def test_only_superadmins_come_here(alice: Client, client: Client) -> None:
    user = User.objects.get(username="alice")
    for path in ("/users", "/users/new", f"/users/{user.id}", f"/users/{uuid4()}"):
        assert client.get(path).url.startswith("/login?next=/users")
        assert alice.get(path).status_code == 403
    for path in ("/users/new", f"/users/{user.id}", f"/users/{user.id}/password"):
        assert alice.post(path, {"username": "dora", "is_superadmin": "on", "is_active": "on"}).status_code == 403
    assert not User.objects.filter(is_superadmin=True).exists()


@pytest.mark.parametrize("id", [uuid4(), "nonsense", "%00"])
def test_an_unknown_user_is_not_found(superadmin: Client, id: object) -> None:
    assert superadmin.get(f"/users/{id}").status_code == 404
    assert superadmin.post(f"/users/{id}/password", {}).status_code == 404


def test_a_superadmin_who_became_a_user_stays_out(superadmin: Client, signed_in) -> None:
    other = make_user("another", superadmin=True)
    client = signed_in(other)
    superadmin.post(f"/users/{other.id}", {"is_active": "on"})
    assert client.get("/users").status_code == 403
