"""GET /memory/<id>/history and POST /memory/<id>/restore"""

import pytest
from django.test import Client

from conversations.models import Message
from instances.models import Instance
from memories.models import Memory, MemoryVersion
from tests.factories import correct, make_conversation, make_memory

pytestmark = pytest.mark.django_db


@pytest.fixture
def memory(support: Instance) -> Memory:
    memory = make_memory(support, "The demo is on Monday", importance=4, category="event")
    correct(memory, content="The demo is on Tuesday", supersedeReason="Acme moved it")
    correct(memory, importance=8, tags=["demo"])
    return memory


def url(memory: Memory, verb: str = "history") -> str:
    return f"/memory/{memory.id}/{verb}?instance=support-bot"


def page(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def test_every_version_with_what_became_of_it(alice: Client, memory: Memory) -> None:
    html = page(alice, url(memory))
    newest, oldest = html.split('id="version-')[1:]
    assert "Acme moved it" in oldest
    assert 'The demo is on <del><span class="visually-hidden">removed: </span>Monday</del>' in oldest
    assert '<ins><span class="visually-hidden">added: </span>Tuesday</ins>' in oldest
    assert "changed by shell server" in oldest
    assert 'Importance: <del><span class="visually-hidden">removed: </span>4</del>' in newest
    assert 'Tags: <del><span class="visually-hidden">removed: </span>none</del>' in newest
    assert "No reason was given." in newest
    assert "Monday" not in newest


def test_what_spoke_for_it_before(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "JIT slows short queries down", evidence={"confidence": "low", "domains": ["a.org"]})
    correct(memory, evidence={"confidence": "high", "domains": ["a.org", "b.org"]}, supersedeReason="verified again")
    html = page(alice, url(memory))
    assert 'Evidence: <del><span class="visually-hidden">removed: </span>confidence: low; domains: a.org</del>' in html
    assert '<span class="visually-hidden">added: </span>confidence: high; domains: a.org, b.org</ins>' in html
    assert "verified again" in html


def test_restoring_a_version_from_before_evidence_was_kept_leaves_the_evidence(
    alice: Client, support: Instance
) -> None:
    memory = make_memory(support, "Tea", evidence={"confidence": "low"})
    correct(memory, content="Coffee")
    MemoryVersion.objects.update(evidence=None, confidence=None)
    assert "Evidence:" not in page(alice, url(memory))
    alice.post(url(memory, "restore"), {"version": "1"})
    memory.refresh_from_db()
    assert (memory.content, memory.evidence) == ("Tea", {"confidence": "low"})


def test_an_automatic_change_says_how_near_and_where_it_was_said(
    alice: Client, support: Instance, memory: Memory
) -> None:
    conversation = make_conversation(support, "It is on Tuesday")
    message = Message.objects.get()
    MemoryVersion.objects.filter(number=1).update(similarity=0.9412, source_message_id=message.id)
    html = page(alice, url(memory))
    assert "Similarity 0.941" in html
    assert (
        f"/conversations/{conversation.id}?instance=support-bot&amp;message={message.id}#message-{message.id}" in html
    )


def test_long_histories_have_pages(alice: Client, memory: Memory) -> None:
    for n in range(30):
        correct(memory, content=f"The demo is on day {n}")
    html = page(alice, url(memory))
    assert "1–20 of 32" in html
    assert 'id="version-32"' in html
    second = page(alice, url(memory) + "&page=2")
    assert "21–32 of 32" in second
    assert 'id="version-12"' in second
    # What became of the newest version of a page stands on the page before.
    part = second.split('id="version-12"')[1].split("</li>")[0]
    assert '<del><span class="visually-hidden">removed: </span>8</del>' in part
    assert '<ins><span class="visually-hidden">added: </span>9</ins>' in part


def test_the_memorys_own_page_shows_the_latest(alice: Client, memory: Memory) -> None:
    html = page(alice, f"/memory/{memory.id}?instance=support-bot")
    assert 'id="version-2"' in html
    assert f"/memory/{memory.id}/history?instance=support-bot" in html
    for n in range(9):
        correct(memory, content=f"The demo is on day {n}")
    html = page(alice, f"/memory/{memory.id}?instance=support-bot")
    assert html.count('id="version-') == 3
    assert "Show the whole history" in html


def test_without_versions(alice: Client, support: Instance) -> None:
    assert "It has always said this" in page(alice, url(make_memory(support, "Always")))


def test_content_is_escaped(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "<script>alert(1)</script>")
    correct(memory, content="<script>alert(2)</script>", supersedeReason="<b>why</b>")
    html = page(alice, url(memory))
    assert "<script>alert" not in html
    assert "<b>why</b>" not in html


def test_restore(alice: Client, memory: Memory) -> None:
    response = alice.post(url(memory, "restore"), {"version": "1"}, follow=True)
    assert response.redirect_chain == [(url(memory), 302)]
    assert "It says again what version 1 said. What it said until now is a version too." in response.content.decode()
    memory.refresh_from_db()
    assert (memory.content, memory.importance, memory.tags) == ("The demo is on Monday", 4, [])
    newest = MemoryVersion.objects.latest("number")
    assert (newest.number, newest.content, newest.reason, newest.actor) == (
        3, "The demo is on Tuesday", "restored version 1", "user alice",
    )  # fmt: skip


def test_restore_of_what_it_says_already(alice: Client, memory: Memory) -> None:
    alice.post(url(memory, "restore"), {"version": "1"})
    again = alice.post(url(memory, "restore"), {"version": "1"}, follow=True)
    assert "It says already what version 1 said." in again.content.decode()
    assert MemoryVersion.objects.count() == 3


@pytest.mark.parametrize("version", ["", "0", "99", "-1", "x", "9" * 30])
def test_restore_of_no_version(alice: Client, memory: Memory, version: str) -> None:
    assert alice.post(url(memory, "restore"), {"version": version}).status_code == 404
    assert MemoryVersion.objects.count() == 2


@pytest.fixture
def superseded(support: Instance) -> Memory:
    old = make_memory(support, "Ann likes tea", key="drink")
    make_memory(support, "Ann likes <coffee>", key="drink", dedupe="create", supersedeReason="She <i>said</i> so")
    return old


def test_a_superseded_memory_can_be_used_again(alice: Client, superseded: Memory) -> None:
    address = f"/memory/{superseded.id}?instance=support-bot"
    html = page(alice, address)
    assert "Ann likes &lt;coffee&gt;</a> took its place" in html
    assert "She &lt;i&gt;said&lt;/i&gt; so" in html
    assert "Use it again" in html
    Memory.objects.filter(content="Ann likes <coffee>").update(key="")
    used = alice.post(url(superseded, "restore"), follow=True)
    assert used.redirect_chain == [(address, 302)]
    html = used.content.decode()
    assert "The assistant can use it again." in html
    assert "its key" not in html
    assert "Use it again" not in html
    assert "It is in use already." in alice.post(url(superseded, "restore"), follow=True).content.decode()
    superseded.refresh_from_db()
    assert superseded.status == "active"


def test_a_superseded_memory_whose_key_is_taken(alice: Client, superseded: Memory) -> None:
    html = alice.post(url(superseded, "restore"), follow=True).content.decode()
    assert "The assistant can use it again. Another memory has its key “drink” now; it has none." in html
    superseded.refresh_from_db()
    assert (superseded.status, superseded.key) == ("active", "")


def test_a_version_of_a_superseded_memory(alice: Client, superseded: Memory) -> None:
    correct(superseded, content="Ann likes milk", key=None)
    html = alice.post(url(superseded, "restore"), {"version": "1"}, follow=True).content.decode()
    assert "The assistant can use it again, and it says what version 1 said." in html


def test_who_may_not_use_it_again(alice: Client, mallory: Client, superseded: Memory) -> None:
    assert mallory.post(url(superseded, "restore")).status_code == 404
    assert mallory.post(url(superseded, "restore").replace("support", "sales")).status_code == 404
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = alice.cookies
    assert strict.post(url(superseded, "restore")).status_code == 403
    superseded.refresh_from_db()
    assert superseded.status == "superseded"


def test_strangers(mallory: Client, alice: Client, memory: Memory, support: Instance) -> None:
    for address in (url(memory), url(memory).replace("support", "sales")):
        assert mallory.get(address).status_code == 404
    assert mallory.post(url(memory, "restore"), {"version": "1"}).status_code == 404
    private = make_memory(support, "A secret", visibility="private", owner="bea")
    assert alice.get(url(private)).status_code == 404
    assert alice.get(url(memory, "restore")).status_code == 405
