"""POST /memory/<id>/pin"""

import pytest
from django.test import Client

from instances.models import Instance
from memories.models import Memory, MemoryVersion
from tests.factories import make_memory

pytestmark = pytest.mark.django_db


def test_pin_and_unpin(alice: Client, support: Instance) -> None:
    memory = make_memory(support)
    url = f"/memory/{memory.id}/pin?instance=support-bot&back=category%3Dgeneral"
    response = alice.post(url, {"pinned": "true"})
    assert response["Location"] == "/memory?category=general&instance=support-bot"
    assert Memory.objects.get(instance=support).pinned
    alice.post(url, {"pinned": "false"})
    assert not Memory.objects.get(instance=support).pinned
    assert not MemoryVersion.objects.exists()


def test_on_its_own_page_the_reader_stays_there(alice: Client, support: Instance) -> None:
    memory = make_memory(support)
    page = f"/memory/{memory.id}?instance=support-bot&back=category%3Dgeneral"
    assert '<input type="hidden" name="stay" value="yes">' in alice.get(page).content.decode()
    response = alice.post(page.replace("?", "/pin?"), {"pinned": "true", "stay": "yes"})
    assert response["Location"] == page
    assert Memory.objects.get(instance=support).pinned


def test_htmx_gets_the_button_alone(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "hello")
    html = alice.post(
        f"/memory/{memory.id}/pin?instance=support-bot", {"pinned": "true"}, headers={"HX-Request": "true"}
    ).content.decode()
    assert html.strip().startswith(f'<button id="pin-{memory.id}"')
    assert 'aria-pressed="true"' in html


def test_only_post_and_only_members(alice: Client, mallory: Client, support: Instance) -> None:
    memory = make_memory(support)
    url = f"/memory/{memory.id}/pin?instance=support-bot"
    assert alice.get(url).status_code == 405
    assert mallory.post(url, {"pinned": "true"}).status_code == 404
    assert not Memory.objects.get(instance=support).pinned
