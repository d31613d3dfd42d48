"""GET /memory/<id>"""

import pytest
from django.test import Client

from instances.models import Instance
from memories.models import Memory
from tests.factories import make_conversation, make_memory

pytestmark = pytest.mark.django_db


def test_it_shows_everything_known(alice: Client, support: Instance) -> None:
    conversation = make_conversation(support, title="Renewal call")
    memory = make_memory(
        support,
        "Carol manages Dan's team.",
        category="relationship",
        role="identity",
        importance=9,
        key="carol-dan",
        tags=["people"],
        owner="erin & co",
        channel="email",
        evidence={"confidence": "high", "corroborated": 3, "domains": "a.example, b.example", "asked": "<why>"},
        sourceConversationId=str(conversation.id),
    )
    html = alice.get(f"/memory/{memory.id}?instance=support-bot").content.decode()
    for part in ("Carol manages Dan&#x27;s team.", "Relationship", "Identity", "carol-dan", "people", "email"):
        assert part in html
    assert f'href="/conversations/{conversation.id}?instance=support-bot">Renewal call</a>' in html
    assert 'href="/memory?instance=support-bot&amp;owner=erin%20%26%20co">erin &amp; co</a>' in html
    assert "<dt>Corroborated</dt><dd>3 times</dd>" in html
    assert '<span class="badge good">high confidence</span>' in html
    assert '<span class="badge">a.example</span><span class="badge">b.example</span>' in html
    assert "<dt>asked</dt><dd>&lt;why&gt;</dd>" in html
    assert str(memory.id) in html
    assert "It has always said this." in html


@pytest.mark.parametrize(("number", "said"), [(1, "1 time, last"), (1234, "1,234 times, last")])
def test_how_often_it_was_recalled(alice: Client, support: Instance, number: int, said: str) -> None:
    memory = make_memory(support)
    Memory.objects.update(access_count=number, last_accessed_at=memory.created_at)
    assert (
        f"<dt>Used in recall</dt><dd>{said}" in alice.get(f"/memory/{memory.id}?instance=support-bot").content.decode()
    )


def test_earlier_versions_are_there(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "The demo is on Monday.", key="demo")
    make_memory(support, "The demo is on Tuesday.", key="demo", supersedeReason="Acme moved it")
    html = alice.get(f"/memory/{memory.id}?instance=support-bot").content.decode()
    assert 'The demo is on <del><span class="visually-hidden">removed: </span>Monday</del>' in html
    assert "The demo is on Tuesday." in html
    assert "Acme moved it" in html


def test_strangers_get_the_same_404_as_for_nothing(mallory: Client, alice: Client, support: Instance) -> None:
    memory = make_memory(support, "private business")
    nothing = "01a1e464-c166-76bb-b939-dd59bab3e80b"
    for url in (
        f"/memory/{memory.id}?instance=support-bot",
        f"/memory/{memory.id}?instance=sales-bot",
        f"/memory/{nothing}?instance=sales-bot",
    ):
        response = mallory.get(url)
        assert response.status_code == 404
        assert "private business" not in response.content.decode()
    assert alice.get(f"/memory/{nothing}?instance=support-bot").status_code == 404
    assert alice.get("/memory/not-an-id?instance=support-bot").status_code == 404


def test_a_private_memory_of_somebody_else_is_not_there(alice: Client, superadmin: Client, support: Instance) -> None:
    memory = make_memory(support, visibility="private", owner="bob")
    assert alice.get(f"/memory/{memory.id}?instance=support-bot").status_code == 404
    assert superadmin.get(f"/memory/{memory.id}?instance=support-bot").status_code == 200
