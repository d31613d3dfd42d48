"""POST /memory/role-hint and /memory/<id>/role, and the hint on the page of a memory"""

from typing import Any

import pytest
from django.test import Client

from instances.models import Instance
from memories.models import Memory, MemoryVersion
from tests.factories import make_memory

pytestmark = pytest.mark.django_db
URL = "/memory/role-hint?instance=support-bot"
LESSON = "Never deploy on Fridays"


def hint(client: Client, **sent: str) -> str:
    response = client.post(URL, sent, headers={"HX-Request": "true"})
    assert response.status_code == 200
    text: str = response.content.decode()
    return text


def test_while_it_is_written(alice: Client, support: Instance) -> None:
    assert "“Never” sounds like a lesson." in hint(alice, content=LESSON, role="context")
    assert "Use role Lesson" in hint(alice, content=LESSON)
    for role in ("lesson",):
        assert "sounds like" not in hint(alice, content=LESSON, role=role)
    for content in ("", "Alice likes tea"):
        assert "sounds like" not in hint(alice, content=content, role="context")
    assert not Memory.objects.exists()


def test_a_click_takes_it(alice: Client, support: Instance) -> None:
    html = hint(alice, use="lesson", content=LESSON, role="context")
    assert "Its role will be Lesson." in html
    assert 'hx-swap-oob="true"' in html
    assert '<option value="lesson" selected>' in html
    assert "oob" not in hint(alice, use="boss", content=LESSON, role="boss")


def test_text_is_escaped(alice: Client, support: Instance) -> None:
    assert "<b>" not in hint(alice, content="https://x/<b>", role="context")


def test_the_form_asks_for_it(alice: Client, support: Instance) -> None:
    memory = make_memory(support)
    for page in ("/memory/new", f"/memory/{memory.id}/edit"):
        assert f'hx-post="{URL}"' in alice.get(f"{page}?instance=support-bot").content.decode()


def form(**fields: Any) -> dict[str, Any]:
    filled = {"content": LESSON, "category": "fact", "importance": "7"}
    return {**filled, "role": "context", "visibility": "instance", "confidence": "1", **fields}


def test_it_blocks_nothing(alice: Client, support: Instance) -> None:
    assert alice.post("/memory/new?instance=support-bot", form()).status_code == 302
    assert Memory.objects.get().role == "context"


@pytest.mark.parametrize(("word", "role"), [("warning", "lesson"), ("self", "identity"), ("LESSON", "lesson")])
def test_the_form_takes_aliases(alice: Client, support: Instance, word: str, role: str) -> None:
    alice.post("/memory/new?instance=support-bot", form(role=word))
    assert Memory.objects.get().role == role


def test_the_form_explains_unknown_words(alice: Client, support: Instance) -> None:
    html = alice.post("/memory/new?instance=support-bot", form(role="boss")).content.decode()
    assert "“boss” is not a role. Choose one of: identity, lesson," in html
    assert '<details class="more" open>' in html


def test_one_click_on_the_page_of_a_memory(alice: Client, support: Instance) -> None:
    memory = make_memory(support, LESSON)
    address = f"/memory/{memory.id}?instance=support-bot"
    assert "Use role Lesson" in alice.get(address).content.decode()
    response = alice.post(f"/memory/{memory.id}/role?instance=support-bot", {"role": "lesson"}, follow=True)
    assert response.redirect_chain == [(address, 302)]
    html = response.content.decode()
    assert "The role is changed." in html
    assert "Use role" not in html
    assert Memory.objects.get().role == "lesson"
    assert MemoryVersion.objects.get().role == "context"


def test_a_wrong_role_changes_nothing(alice: Client, support: Instance) -> None:
    memory = make_memory(support, LESSON)
    assert alice.post(f"/memory/{memory.id}/role?instance=support-bot", {"role": "boss"}).status_code == 400
    assert Memory.objects.get().role == "context"


def test_a_stranger_cannot(mallory: Client, support: Instance, sales: Instance) -> None:
    memory = make_memory(support, LESSON)
    for instance in ("support-bot", "sales-bot"):
        response = mallory.post(f"/memory/{memory.id}/role?instance={instance}", {"role": "lesson"})
        assert response.status_code == 404
    assert Memory.objects.get().role == "context"
