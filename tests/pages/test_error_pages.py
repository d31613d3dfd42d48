"""Addresses that are none, and forms that are out of date"""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from instances.models import Instance
from memoryconsole import upload_limit
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


def test_a_file_that_is_too_large_even_to_be_read(
    alice: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_limit, "BESIDE_THE_FILE", 0)
    settings.IMPORT_MAX_BYTES = 100
    file = SimpleUploadedFile("memories.jsonl", b"x" * 200)
    response = alice.post("/memory/import?instance=support-bot", {"file": file})
    html = response.content.decode()
    assert response.status_code == 413
    assert "A file may have at most 100 bytes." in html
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
