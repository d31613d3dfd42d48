"""GET and POST /memory/new"""

from typing import Any

import pytest
from django.test import Client

from instances.models import Instance
from memories.models import AuditEntry, Memory, MemoryVersion
from memories.vocabulary import EmbeddingState
from tests.factories import make_conversation, make_memory, make_user

pytestmark = pytest.mark.django_db

URL = "/memory/new?instance=support-bot"


def form(**fields: Any) -> dict[str, Any]:
    filled = {"content": "Bob's office is in Munich.", "category": "fact", "importance": "7"}
    return {**filled, "role": "context", "visibility": "instance", "confidence": "1", **fields}


def test_it_saves_and_returns_to_the_list(alice: Client, support: Instance) -> None:
    conversation = make_conversation(support)
    response = alice.post(URL, form(source_conversation_id=str(conversation.id)), follow=True)
    assert response.redirect_chain == [("/memory?instance=support-bot", 302)]
    assert "Saved. The assistant can use it on its next turn." in response.content.decode()
    memory = Memory.objects.get(instance=support)
    assert (memory.content, memory.category, memory.importance) == ("Bob's office is in Munich.", "fact", 7)
    assert memory.source_conversation_id == conversation.id
    assert memory.source == "manual"
    assert memory.embedding == EmbeddingState.PENDING
    assert AuditEntry.objects.get(instance=support).actor == "user alice"


def test_the_rest_behind_more(alice: Client, support: Instance) -> None:
    alice.cookies["tz"] = "Europe/Berlin"
    alice.post(
        URL,
        form(
            role="lesson",
            key="munich",
            tags=" office , , travel,office",
            summary="Munich",
            visibility="private",
            owner="bob",
            occurred_at="2026-07-01T10:00",
            expires_at="2036-07-01T10:00",
            channel="chat",
            confidence="0.5",
            pinned="on",
        ),
    )
    memory = Memory.objects.get(instance=support)
    assert (memory.role, memory.key, memory.tags) == ("lesson", "munich", ["office", "travel"])
    assert (memory.summary, memory.visibility, memory.owner) == ("Munich", "private", "bob")
    assert (memory.channel, memory.confidence, memory.pinned) == ("chat", 0.5, True)
    assert memory.occurred_at is not None
    assert memory.occurred_at.isoformat() == "2026-07-01T08:00:00+00:00"


def test_the_form_can_start_from_a_conversation(alice: Client, support: Instance) -> None:
    conversation = make_conversation(support, title="Renewal call")
    html = alice.get(f"{URL}&sourceConversationId={conversation.id}").content.decode()
    assert f'value="{conversation.id}"' in html
    assert "Renewal call" in html


def test_it_returns_to_the_list_it_came_from(alice: Client, support: Instance) -> None:
    response = alice.post(f"{URL}&back=category%3Dfact%26instance%3Dsales-bot", form())
    assert response["Location"] == "/memory?category=fact&instance=support-bot"


def test_it_is_one_click_away_also_where_the_list_does_not_show_it(alice: Client, support: Instance) -> None:
    shown = alice.post(f"{URL}&back=category%3Dfact", form(), follow=True).content.decode()
    link = f'<a href="/memory/{Memory.objects.get().id}?instance=support-bot&amp;back=category%3Dfact">Open it</a>'
    assert link in shown
    assert "leave it out" not in shown
    hidden = alice.post(f"{URL}&back=category%3Devent", form(), follow=True).content.decode()
    assert "The filters below leave it out." in hidden
    nonsense = alice.post(f"{URL}&back=minImportance%3D99", form(), follow=True).content.decode()
    assert "leave it out" not in nonsense


def test_what_only_its_owner_may_read_is_not_linked(alice: Client, support: Instance) -> None:
    html = alice.post(URL, form(visibility="private", owner="bob"), follow=True).content.decode()
    assert "Only bob and superadmins can read it." in html
    assert "Open it" not in html


def test_credentials_are_replaced_and_that_is_said(alice: Client, support: Instance) -> None:
    response = alice.post(URL, form(content="The password: hunter2000"), follow=True)
    assert "Credentials in it were replaced" in response.content.decode()
    assert Memory.objects.get(instance=support).content == "The password: [redacted password]"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"content": ""}, "This may not be empty."),
        ({"content": " \n\t "}, "This may not be empty."),
        ({"content": " \u200b\u2060\ufeff "}, "This may not be empty."),
        ({"content": "x" * 32_001}, "At most 32,000 characters are allowed; this has 32,001."),
        ({"content": "a\x00b"}, "Null characters are not allowed."),
        ({"category": "opinion"}, "“opinion” is not a category. Choose one of: general,"),
        ({"importance": "0"}, "0 is not one of the available choices"),
        ({"importance": "11"}, "11 is not one of the available choices"),
        ({"importance": "high"}, "high is not one of the available choices"),
        ({"importance": "3.5"}, "3.5 is not one of the available choices"),
        ({"importance": ""}, "This field is required."),
        ({"source_conversation_id": "nonsense"}, "This is not an id."),
        ({"source_conversation_id": "01a1e464-c166-76bb-b939-dd59bab3e80b"}, "There is no such conversation"),
        ({"visibility": "private"}, "A private memory needs an owner."),
        ({"confidence": "2"}, "Must be at most 1."),
        ({"occurred_at": "tomorrow"}, "Enter a valid date/time."),
        ({"tags": "x" * 65}, "At most 64 characters are allowed"),
        ({"key": "x" * 201}, "At most 200 characters are allowed"),
    ],
)
def test_bad_input_is_explained_and_nothing_is_lost(
    alice: Client, support: Instance, fields: dict[str, str], said: str
) -> None:
    response = alice.post(URL, form(tags="kept", **fields) if "tags" not in fields else form(**fields))
    html = response.content.decode()
    assert response.status_code == 200
    assert said in html
    if "content" not in fields:
        assert "Bob&#x27;s office is in Munich." in html
    assert not Memory.objects.filter(instance=support).exists()


def test_a_conversation_of_another_instance_is_no_source(alice: Client, support: Instance, sales: Instance) -> None:
    foreign = make_conversation(sales)
    html = alice.post(URL, form(source_conversation_id=str(foreign.id))).content.decode()
    assert "There is no such conversation in this instance." in html
    assert not Memory.objects.filter(instance=support).exists()


def test_a_key_that_is_taken_changes_nothing(alice: Client, support: Instance) -> None:
    first = make_memory(support, "the first", key="renewal")
    html = alice.post(URL, form(key="renewal")).content.decode()
    assert "Another memory has this key." in html
    assert ">the first</p>" in html
    assert f'<a href="/memory/{first.id}/edit?instance=support-bot">Correct it</a>' in html
    assert Memory.objects.get(instance=support).content == "the first"


def test_a_key_of_somebody_elses_private_memory_does_not_open_it(alice: Client, support: Instance) -> None:
    private = make_memory(support, "Bob is ill.", key="health", owner="bob", visibility="private")
    sent = form(key="health", owner="bob", supersede_reason="out of date")
    html = alice.post(URL, sent).content.decode()
    assert "Another memory has this key." in html
    assert "Bob is ill." not in html
    assert str(private.id) not in html
    private.refresh_from_db()
    assert (private.content, private.visibility) == ("Bob is ill.", "private")
    assert not MemoryVersion.objects.exists()
    assert alice.get(f"/memory/{private.id}?instance=support-bot").status_code == 404


def test_strangers_cannot_write(mallory: Client, client: Client, support: Instance) -> None:
    assert mallory.post(URL, form()).status_code == 404
    assert mallory.get(URL).status_code == 404
    assert client.post(URL, form()).status_code == 302
    assert not Memory.objects.exists()


def test_a_form_from_elsewhere_is_refused(support: Instance) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(make_user("carol", support), backend="django.contrib.auth.backends.ModelBackend")
    assert strict.post(URL, form()).status_code == 403
    assert not Memory.objects.exists()
