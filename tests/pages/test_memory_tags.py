"""POST /memory/<id>/tags, and the tags in the form"""

from typing import Any

import pytest
from django.test import Client

from instances.models import Instance
from memories.models import AuditEntry, Memory
from tests.factories import make_memory

pytestmark = pytest.mark.django_db


def url(memory: Memory) -> str:
    return f"/memory/{memory.id}/tags?instance=support-bot"


def tags(memory: Memory) -> list[str]:
    return Memory.objects.get(pk=memory.pk).tags


def test_one_click_removes_a_tag(alice: Client, support: Instance) -> None:
    memory = make_memory(support, tags=["tea", "a, b", "office"])
    assert 'aria-label="Remove the tag a, b"' in alice.get(f"/memory/{memory.id}?instance=support-bot").content.decode()
    response = alice.post(url(memory), {"untag": "a, b"})
    assert (response.status_code, response.headers["Location"]) == (302, f"/memory/{memory.id}?instance=support-bot")
    assert tags(memory) == ["tea", "office"]
    entry = AuditEntry.objects.filter(action="changed").get()
    assert (entry.actor, entry.detail) == ("user alice", {"fields": ["tags"]})


def test_a_tag_is_added_once(alice: Client, support: Instance) -> None:
    memory = make_memory(support, tags=["tea"])
    for _ in range(2):
        alice.post(url(memory), {"tag": " office "})
    assert tags(memory) == ["tea", "office"]


def test_several_tags_are_separated_by_commas(alice: Client, support: Instance) -> None:
    memory = make_memory(support, tags=["tea"])
    alice.post(url(memory), {"tag": "office, tea,, vip "})
    assert tags(memory) == ["tea", "office", "vip"]


def test_htmx_gets_the_tags_alone(alice: Client, support: Instance) -> None:
    memory = make_memory(support, tags=["tea"])
    html = alice.post(url(memory), {"tag": "<b>"}, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in html
    assert "&lt;b&gt;" in html
    assert 'id="tags"' in html


@pytest.mark.parametrize(("sent", "says"), [({"tag": "x" * 65}, "At most 64 characters"), ({"tag": "a\x00"}, "NUL")])
def test_a_wrong_tag_is_explained(alice: Client, support: Instance, sent: dict[str, str], says: str) -> None:
    memory = make_memory(support, tags=["tea"])
    assert says in alice.post(url(memory), sent, headers={"HX-Request": "true"}).content.decode()
    assert says in alice.post(url(memory), sent, follow=True).content.decode()
    assert tags(memory) == ["tea"]


def test_a_stranger_cannot(mallory: Client, support: Instance, sales: Instance) -> None:
    memory = make_memory(support, tags=["tea"])
    assert mallory.post(url(memory), {"untag": "tea"}).status_code == 404
    assert mallory.post(f"/memory/{memory.id}/tags?instance=sales-bot", {"untag": "tea"}).status_code == 404
    assert tags(memory) == ["tea"]


def form(**fields: Any) -> dict[str, Any]:
    filled = {"content": "Text", "category": "fact", "importance": "7", "role": "context"}
    return {**filled, "visibility": "instance", "confidence": "1", **fields}


def test_the_form_offers_what_is_used_most(alice: Client, support: Instance, sales: Instance) -> None:
    for words in (["tea"], ["tea", "office"]):
        make_memory(support, tags=words)
    make_memory(sales, tags=["secret"])
    html = alice.get("/memory/new?instance=support-bot").content.decode()
    assert html.index('<option value="tea">2</option>') < html.index('<option value="office">1</option>')
    assert "secret" not in html


def test_the_form_keeps_ticked_tags_and_adds_typed_ones(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "Text", category="fact", importance=7, tags=["tea", "a, b", "office"])
    address = f"/memory/{memory.id}/edit?instance=support-bot"
    assert 'name="kept_tags" value="a, b" checked' in alice.get(address).content.decode()
    alice.post(address, form(kept_tags=["tea", "a, b"], tags="new, tea,"))
    assert tags(memory) == ["tea", "a, b", "new"]
    alice.post(address, form())
    assert tags(memory) == []


def test_after_a_mistake_no_tag_is_lost(alice: Client, support: Instance) -> None:
    sent = form(content="", kept_tags=["tea"], tags="office, travel")
    html = alice.post("/memory/new?instance=support-bot", sent).content.decode()
    for tag in ("tea", "office", "travel"):
        assert f'name="kept_tags" value="{tag}" checked' in html
