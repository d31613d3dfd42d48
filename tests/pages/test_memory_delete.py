"""GET and POST /memory/<id>/delete"""

import pytest
from django.test import Client

from instances.models import Instance
from memories.models import AuditEntry, Memory, MemoryVersion
from tests.factories import make_memory

pytestmark = pytest.mark.django_db


def test_it_asks_first_and_then_deletes_for_good(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "Old office: Berlin", key="office")
    make_memory(support, "Office: Munich", key="office")
    url = f"/memory/{memory.id}/delete?instance=support-bot"
    html = alice.get(url).content.decode()
    assert "Delete this memory for good?" in html
    assert "1 earlier version goes with it" in html
    assert Memory.objects.filter(pk=memory.pk).exists()
    said = alice.post(url, follow=True).content.decode()
    assert "Deleted 1 memory with 1 earlier version, 2 search entries. Nothing of it is left." in said
    assert not Memory.objects.exists()
    assert not MemoryVersion.objects.exists()
    entry = AuditEntry.objects.get(instance=support, action="deleted")
    assert (entry.memory_ids, entry.actor, entry.detail) == ([memory.id], "user alice", {})


def test_htmx_gets_the_question_alone(alice: Client, support: Instance) -> None:
    memory = make_memory(support)
    html = alice.get(
        f"/memory/{memory.id}/delete?instance=support-bot", headers={"HX-Request": "true"}
    ).content.decode()
    assert "<html" not in html
    assert "csrfmiddlewaretoken" in html


def test_deleting_twice_is_a_404(alice: Client, support: Instance) -> None:
    memory = make_memory(support)
    url = f"/memory/{memory.id}/delete?instance=support-bot"
    assert alice.post(url).status_code == 302
    assert alice.post(url).status_code == 404


def test_strangers_delete_nothing(mallory: Client, client: Client, support: Instance) -> None:
    memory = make_memory(support)
    for slug in ("support-bot", "sales-bot"):
        assert mallory.post(f"/memory/{memory.id}/delete?instance={slug}").status_code == 404
    assert client.post(f"/memory/{memory.id}/delete?instance=support-bot").status_code == 302
    assert Memory.objects.filter(pk=memory.pk).exists()
