"""GET /memory/review, GET and POST /memory/<id>/review, POST /memory/review/bulk"""

import pytest
from django.test import Client

from conversations.models import Message
from instances.models import Instance
from memories.models import Memory, MemoryVersion
from tests.factories import make_conversation, make_memory, make_waiting

pytestmark = pytest.mark.django_db
LIST = "/memory/review?instance=support-bot"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def known(support: Instance) -> Memory:
    return make_memory(support, "The demo is on Monday")


@pytest.fixture
def waiting(support: Instance, known: Memory) -> Memory:
    return make_waiting(support, "The demo is on Tuesday", known, importance=8)


def url(memory: Memory, query: str = "") -> str:
    return f"/memory/{memory.id}/review?instance=support-bot{query}"


def page(client: Client, address: str = LIST) -> str:
    return client.get(address, follow=True).content.decode()


def test_the_memory_page_says_how_many_wait(alice: Client, support: Instance) -> None:
    assert 'badge warn">' not in page(alice, "/memory?instance=support-bot").split("To review")[1][:60]
    make_waiting(support, "A doubtful fact")
    html = page(alice, "/memory?instance=support-bot")
    assert 'To review <span class="badge warn">1</span>' in html
    assert "A doubtful fact" not in html


def test_each_with_its_source_and_its_reason(alice: Client, support: Instance, waiting: Memory) -> None:
    conversation = make_conversation(support, "I moved to Graz", title="Moving")
    message = Message.objects.get()
    Instance.objects.update(auto_approve_importance=5)
    make_waiting(
        support,
        "Ann <b>lives</b> in Graz",
        importance=3,
        sourceConversationId=str(conversation.id),
        sourceMessageIds=[str(message.id)],
    )
    html = page(alice)
    assert "Ann &lt;b&gt;lives&lt;/b&gt; in Graz" in html
    assert "Importance 3 is below 5" in html
    assert (
        f'/conversations/{conversation.id}?instance=support-bot&amp;message={message.id}#message-{message.id}"' in html
    )
    assert "It may contradict another memory: they differ in names." in html
    assert '<del><span class="visually-hidden">removed: </span>Monday</del>' in html
    assert '<ins><span class="visually-hidden">added: </span>Tuesday</ins>' in html
    assert "Ann &lt;b&gt;" not in page(alice, f"{LIST}&why=conflict")
    assert "Tuesday" not in page(alice, f"{LIST}&why=importance")


def test_nothing_waits(alice: Client, support: Instance) -> None:
    assert "Nothing waits for review" in page(alice)
    assert "None of these waits" in page(alice, f"{LIST}&why=conflict")


def test_pages(alice: Client, support: Instance) -> None:
    for n in range(25):
        make_waiting(support, f"Doubtful fact {n:02}")
    assert "1–20 of 25" in page(alice)
    html = page(alice, f"{LIST}&page=2")
    assert "21–25 of 25" in html
    assert "Doubtful fact 00" in html
    assert "1–20 of 25" in page(alice, f"{LIST}&page=nonsense")


def test_approve(alice: Client, waiting: Memory) -> None:
    response = alice.post(url(waiting), {"action": "approve"}, follow=True)
    assert response.redirect_chain == [(LIST, 302)]
    assert "Approved: “The demo is on Tuesday”" in response.content.decode()
    waiting.refresh_from_db()
    assert waiting.listed


def test_with_htmx_the_row_goes_and_the_number_changes(alice: Client, support: Instance, waiting: Memory) -> None:
    make_waiting(support, "Another one")
    html = alice.post(url(waiting), {"action": "keep"}, headers=HTMX).content.decode()
    assert 'id="review-count" hx-swap-oob="true">1</span>' in html
    assert 'id="messages" role="status" aria-live="polite" hx-swap-oob="innerHTML"' in html
    assert "Both are kept: “The demo is on Tuesday”" in html
    assert "Another one" not in html


def test_somebody_was_faster(alice: Client, waiting: Memory) -> None:
    alice.post(url(waiting), {"action": "approve"})
    again = alice.post(url(waiting), {"action": "reject"}, headers=HTMX)
    assert "Somebody has reviewed this memory already." in again.content.decode()
    assert Memory.objects.filter(id=waiting.id).exists()
    Memory.objects.filter(id=waiting.id).delete()
    gone = alice.post(url(waiting), {"action": "reject"}, headers=HTMX)
    assert (gone.status_code, "no such memory" in gone.content.decode()) == (200, True)
    assert alice.post(url(waiting), {"action": "reject"}).status_code == 404


def test_edit_and_approve(alice: Client, waiting: Memory) -> None:
    assert "Edit and approve" in page(alice, url(waiting, "&action=edit"))
    fields = {"action": "edit", "content": "The demo is on Friday", "category": "event", "importance": "9"}
    alice.post(url(waiting), fields)
    waiting.refresh_from_db()
    assert (waiting.content, waiting.category, waiting.importance, waiting.listed) == (
        "The demo is on Friday", "event", 9, True,
    )  # fmt: skip
    assert MemoryVersion.objects.get().reason == "corrected in review"


def test_a_wrong_edit_is_asked_again(alice: Client, waiting: Memory) -> None:
    fields = {"action": "edit", "content": " ", "category": "event", "importance": "9"}
    assert "This may not be empty." in alice.post(url(waiting), fields).content.decode()
    response = alice.post(url(waiting), fields, headers=HTMX)
    assert "This may not be empty." in response.content.decode()
    assert (response["HX-Retarget"], response["HX-Reswap"]) == ("#dialog", "innerHTML")
    assert (
        "not one of the available choices" in alice.post(url(waiting), {**fields, "importance": "12"}).content.decode()
    )
    waiting.refresh_from_db()
    assert waiting.review == "pending"


def test_merge(alice: Client, known: Memory, waiting: Memory) -> None:
    html = page(alice, url(waiting, "&action=merge"))
    assert "What it will say" in html
    assert "The demo is on Tuesday</textarea>" in html
    response = alice.post(url(waiting), {"action": "merge", "content": "The demo moved to Tuesday"}, follow=True)
    assert "Merged into “The demo moved to Tuesday”" in response.content.decode()
    assert list(Memory.objects.values_list("id", "content")) == [(known.id, "The demo moved to Tuesday")]


def test_merging_without_another_one_is_not_offered(alice: Client, support: Instance) -> None:
    alone = make_waiting(support, "Alone")
    assert "action=merge" not in page(alice)
    assert alice.get(url(alone, "&action=merge")).status_code == 302
    response = alice.post(url(alone), {"action": "merge", "content": "x"}, follow=True)
    assert "There is no other memory to merge it with." in response.content.decode()


def test_reject(alice: Client, waiting: Memory) -> None:
    assert "action=reject" in page(alice)
    question = page(alice, url(waiting, "&action=reject"))
    assert "The demo is on Tuesday" in question
    assert "It is deleted for good." in question
    assert Memory.objects.filter(id=waiting.id).exists()
    response = alice.post(url(waiting), {"action": "reject"}, follow=True)
    assert "Rejected. Deleted 1 memory with 1 search entry." in response.content.decode()
    assert not Memory.objects.filter(id=waiting.id).exists()


def test_an_unknown_action(alice: Client, waiting: Memory) -> None:
    assert alice.post(url(waiting), {"action": "like"}).status_code == 400
    assert alice.get(url(waiting)).status_code == 302


def test_many_at_once(alice: Client, support: Instance) -> None:
    memories = [make_waiting(support, f"Doubtful fact {n}") for n in range(4)]
    bulk = "/memory/review/bulk?instance=support-bot"
    ids = [str(memory.id) for memory in memories]
    assert "Nothing is selected." in alice.post(bulk, {"action": "approve"}, follow=True).content.decode()
    assert "Choose what to do" in alice.post(bulk, {"ids": ids}, follow=True).content.decode()
    html = alice.post(bulk, {"action": "approve", "ids": ids[:2]}, follow=True).content.decode()
    assert "Approved 2 memories." in html
    question = alice.post(bulk, {"action": "reject", "ids": ids}).content.decode()
    assert "Reject 2 memories" in question
    assert Memory.objects.count() == 4
    html = alice.post(bulk, {"action": "reject", "ids": ids, "confirmed": "1"}, follow=True).content.decode()
    assert "Deleted 2 memories" in html
    assert "2 had been reviewed already." in html
    assert Memory.objects.count() == 2
    assert alice.post(bulk, {"action": "approve", "ids": ["nonsense"]}).status_code == 404


def test_private_memories_of_others(alice: Client, superadmin: Client, support: Instance) -> None:
    hers = make_waiting(support, "Bea's secret", visibility="private", owner="bea")
    assert "secret" not in page(alice)
    assert alice.post(url(hers), {"action": "approve"}).status_code == 404
    assert "Bea&#x27;s secret" in page(superadmin)


def test_strangers(mallory: Client, waiting: Memory) -> None:
    assert mallory.get(LIST).status_code == 404
    assert mallory.post(url(waiting), {"action": "reject"}).status_code == 404
    bulk = "/memory/review/bulk?instance=sales-bot"
    mallory.post(bulk, {"action": "reject", "ids": [str(waiting.id)], "confirmed": "1"})
    assert Memory.objects.filter(id=waiting.id).exists()


def test_merging_says_who_will_read_it_when_the_two_differ(alice: Client, known: Memory, waiting: Memory) -> None:
    assert "narrower visibility" not in page(alice, url(waiting, "&action=merge"))
    Memory.objects.filter(pk=known.pk).update(visibility="team")
    html = page(alice, url(waiting, "&action=merge"))
    assert "the narrower visibility of the two: <b>Instance</b>" in html
    assert '<b>Known already</b><span class="badge">Team</span>' in html
    assert '<b>New</b><span class="badge">Instance</span>' in html
    assert "narrower visibility" not in page(alice, url(waiting, "&action=edit"))
