import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from accounts.keys import key_presented
from accounts.models import AccountEvent, ApiKey
from instances.models import Instance
from tests.factories import make_key

pytestmark = pytest.mark.django_db

SHOWN = re.compile(r'id="shown-key" value="(mc_[^"]+)"')


def make(client: Client, **values: object):
    return client.post("/keys/new", {"name": "engine", "instances": ["support-bot"], "expires": "", **values})


def test_a_key_is_shown_once(alice: Client, support: Instance) -> None:
    assert "No keys yet" in alice.get("/keys").content.decode()

    response = make(alice, read_only="on")

    found = SHOWN.search(response.content.decode())
    assert response.status_code == 200
    assert "no-store" in response.headers["Cache-Control"]
    assert found
    key = key_presented(found[1])
    assert key
    assert (key.name, key.read_only, key.all_instances, key.expires_at) == ("engine", True, False, None)
    assert list(key.instances.all()) == [support]
    listed = alice.get("/keys").content.decode()
    assert key.prefix in listed
    assert found[1] not in listed
    assert found[1] not in str(dict(alice.session))
    assert AccountEvent.objects.get(action="key created").actor == "user alice"


def test_the_instance_a_key_is_asked_for_is_ticked(
    alice: Client, superadmin: Client, support: Instance, sales: Instance
) -> None:
    ticked = re.compile(r'name="instances" value="([^"]+)"[^>]* checked')
    assert ticked.findall(superadmin.get("/keys/new").content.decode()) == []
    for address in ("/overview?instance=sales-bot", "/memory?instance=sales-bot", "/conversations?instance=sales-bot"):
        link = re.search(r'href="(/keys/new[^"]*)"', superadmin.get(address).content.decode())
        assert link
        assert ticked.findall(superadmin.get(link[1]).content.decode()) == ["sales-bot"]
    # Of one there is nothing to choose.
    assert ticked.findall(alice.get("/keys/new").content.decode()) == ["support-bot"]
    assert "sales-bot" not in alice.get("/keys/new?instance=sales-bot").content.decode()


def test_sending_the_form_again_makes_no_second_key(alice: Client, support: Instance) -> None:
    id = re.search(r'name="id" value="([^"]+)"', alice.get("/keys/new").content.decode())
    assert id
    assert SHOWN.search(make(alice, id=id[1]).content.decode())
    again = alice.post("/keys/new", {"name": "engine", "instances": ["support-bot"], "id": id[1]}, follow=True)
    assert again.redirect_chain == [("/keys", 302)]
    assert "This key has been made already, and was shown once." in again.content.decode()
    assert str(ApiKey.objects.get().id) == id[1]


@pytest.mark.parametrize("days", [30, 90, 365])
def test_a_key_can_expire(alice: Client, days: int) -> None:
    make(alice, expires=str(days))
    expires_at = ApiKey.objects.get().expires_at
    assert expires_at
    assert abs(expires_at - timezone.now() - timedelta(days=days)) < timedelta(minutes=1)


def test_a_superadmin_makes_keys_that_reach_further(superadmin: Client, support: Instance) -> None:
    make(superadmin, instances=[], all_instances="on", read_team="on", read_org="on")
    key = ApiKey.objects.get()
    assert (key.all_instances, key.read_team, key.read_org) == (True, True, True)


def test_all_instances_and_single_ones_contradict_each_other(superadmin: Client, support: Instance) -> None:
    page = make(superadmin, instances=["support-bot"], all_instances="on").content.decode()
    assert "Choose all instances or only these, not both." in page
    assert not ApiKey.objects.exists()


def test_a_user_does_not(alice: Client, sales: Instance) -> None:
    page = alice.get("/keys/new").content.decode()
    assert "All instances" not in page
    assert "sales-bot" not in page

    make(alice, all_instances="on", read_team="on", read_org="on")

    key = ApiKey.objects.get()
    assert (key.all_instances, key.read_team, key.read_org) == (False, False, False)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"name": ""}, "This field is required."),
        ({"name": "n" * 101}, "at most 100 characters"),
        ({"name": "a\x00b"}, "Null characters are not allowed."),
        ({"instances": []}, "Choose at least one instance."),
        ({"instances": ["sales-bot"]}, "sales-bot is not one of the available choices"),
        ({"instances": ["no-such-bot"]}, "no-such-bot is not one of the available choices"),
        ({"expires": "7"}, "7 is not one of the available choices"),
    ],
)
def test_bad_input_makes_no_key(alice: Client, sales: Instance, values: dict[str, object], says: str) -> None:
    response = make(alice, **values)

    assert response.status_code == 200
    assert says in response.content.decode()
    assert not ApiKey.objects.exists()


def test_revoking_asks_first(alice: Client, support: Instance) -> None:
    whole = make_key(support)
    key = ApiKey.objects.get()

    assert "Revoke “key" in alice.get(f"/keys/{key.id}/revoke").content.decode()
    assert key_presented(whole)
    fragment = alice.get(f"/keys/{key.id}/revoke", headers={"HX-Request": "true"}).content.decode()
    assert "Revoke key" in fragment
    assert "<html" not in fragment

    assert alice.post(f"/keys/{key.id}/revoke").url == "/keys"
    assert key_presented(whole) is None
    assert "Revoked" in alice.get("/keys").content.decode()
    assert alice.post(f"/keys/{key.id}/revoke").status_code == 302
    assert AccountEvent.objects.filter(action="key revoked").count() == 1


def test_a_stranger_sees_no_keys_of_others(mallory: Client, support: Instance, sales: Instance, client: Client) -> None:
    make_key(support)
    make_key(support, sales)
    make_key()

    page = mallory.get("/keys").content.decode()

    assert "No keys yet" in page
    assert "support-bot" not in page
    for key in ApiKey.objects.all():
        assert mallory.get(f"/keys/{key.id}/revoke").status_code == 404
        assert mallory.post(f"/keys/{key.id}/revoke").status_code == 404
        assert client.get(f"/keys/{key.id}/revoke").url.startswith("/login")
    assert not ApiKey.objects.filter(revoked_at__isnull=False).exists()


@pytest.mark.parametrize("id", [uuid4(), "nonsense"])
def test_an_unknown_key_is_not_found(superadmin: Client, id: object) -> None:
    assert superadmin.post(f"/keys/{id}/revoke").status_code == 404


@pytest.mark.parametrize("path", ["/keys", "/keys/new"])
def test_one_signs_in_first(client: Client, db: None, path: str) -> None:
    assert client.get(path).url == f"/login?next={path}"
