"""Addresses that are none, and forms that are out of date"""

import pytest
from django.test import Client

from instances.models import Instance
from tests.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("address", ["/nowhere", "/memory/nope", "/instances/support-bot/nope"])
def test_an_address_that_is_none(alice: Client, client: Client, address: str) -> None:
    for reader in (alice, client):
        response = reader.get(address)
        html = response.content.decode()
        assert (response.status_code, "<h1>Not found</h1>" in html) == (404, True)
        assert 'href="/memory"' in html
        assert "css/base" in html


def test_an_address_that_only_takes_what_is_sent(alice: Client) -> None:
    response = alice.get("/memory/bulk?instance=support-bot")
    html = response.content.decode()
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")
    assert "This address is no page" in html
    assert 'href="/memory"' in html


def test_a_form_of_another_session(support: Instance) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(make_user("bea", support), backend="django.contrib.auth.backends.ModelBackend")
    response = strict.post("/memory/new?instance=support-bot", {"content": "x", "csrfmiddlewaretoken": "stale"})
    html = response.content.decode()
    assert response.status_code == 403
    assert "out of date" in html
    assert "Nothing was saved." in html
    assert "DEBUG" not in html
