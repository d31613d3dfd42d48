"""/memory/export: what the filters of the list leave"""

import json
from typing import Any

import pytest
from django.test import Client

from instances.models import Instance
from memories.models import AuditEntry
from tests.factories import make_memory

pytestmark = pytest.mark.django_db
URL = "/memory/export?instance=support-bot"


def contents(response: Any) -> list[str]:
    return [json.loads(line)["content"] for line in b"".join(response.streaming_content).splitlines()]


def test_the_list_offers_it(alice: Client, support: Instance) -> None:
    make_memory(support, "Tea", tags=["a b"])
    page = alice.get("/memory?instance=support-bot&tag=a+b&page=1&sort=oldest&search=tea").content.decode()
    assert 'href="/memory/export?instance=support-bot&amp;tag=a+b"' in page
    assert 'href="/memory/export?instance=support-bot&amp;tag=a+b&amp;format=csv"' in page
    assert 'href="/memory/import?instance=support-bot"' in page
    fragment = alice.get("/memory?instance=support-bot&pinned=true", headers={"HX-Request": "true"}).content.decode()
    assert 'id="exports" hx-swap-oob="true"' in fragment
    assert "/memory/export?instance=support-bot&amp;pinned=true" in fragment


def test_what_the_filters_leave(alice: Client, support: Instance, sales: Instance) -> None:
    make_memory(support, "Tea", tags=["a"])
    make_memory(support, "Coffee")
    make_memory(sales, "Theirs")
    response = alice.get(f"{URL}&tag=a")
    assert response["Content-Disposition"].startswith('attachment; filename="support-bot-')
    assert contents(response) == ["Tea"]
    assert contents(alice.get(URL)) == ["Tea", "Coffee"]
    csv = b"".join(alice.get(f"{URL}&format=csv").streaming_content).decode()
    assert csv.startswith("id,key,content,")
    assert csv.count("\r\n") == 3


def test_private_memories(alice: Client, superadmin: Client, support: Instance) -> None:
    make_memory(support, "Bob's", visibility="private", owner="bob")
    assert contents(alice.get(URL)) == []
    assert contents(superadmin.get(URL)) == ["Bob's"]
    assert AuditEntry.objects.filter(action="read_private", actor="user root").count() == 1


def test_a_wrong_filter_shows_the_list_that_says_so(alice: Client, support: Instance) -> None:
    response = alice.get(f"{URL}&minImportance=12")
    assert (response.status_code, response["Location"]) == (302, "/memory?instance=support-bot&minImportance=12")


def test_strangers(mallory: Client, support: Instance) -> None:
    assert mallory.get(URL).status_code == 404
