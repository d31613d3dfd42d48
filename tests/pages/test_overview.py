"""GET /overview"""

import io
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.models import User
from instances.models import Instance
from memories.attachments import attach
from memories.audit import READ_PRIVATE
from memories.draft import MemoryDraft
from memories.embedding.backfill import embed_pending
from memories.models import AuditEntry, Job, Memory, Recall
from memories.recall.log import fold_uses
from memories.recall.recalling import RecallRequest, recall
from memories.review.duplicates import keep_both
from memories.review.inbox import approve
from memories.store import save_many
from memoryconsole.ids import uuid7_at
from tests.factories import (
    make_conversation,
    make_failed_job,
    make_memories,
    make_memory,
    make_pair,
    make_procedure,
    make_user,
    make_waiting,
    scope_of,
)

pytestmark = pytest.mark.django_db
PAGE = "/overview?instance=support-bot"
NOTHING = "Nothing needs you here."


def page(client: Client, address: str = PAGE) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def figure(html: str, title: str) -> str:
    """What stands under a title, without the tags."""
    found = re.search(rf"<dt>{title}</dt><dd[^>]*>(.*?)</dd>", html)
    assert found, title
    return re.sub(r"<[^>]+>", "", found[1])


@pytest.fixture
def quiet(offline: Instance, db: None) -> Instance:
    """The support bot with a worker and without memory, so that nothing needs anybody."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now())")
    Instance.objects.filter(pk=offline.pk).update(memory_enabled=False)
    offline.refresh_from_db()
    return offline


def settled(bot: Instance) -> Memory:
    memory = make_memory(bot, "Alice prefers tables.")
    embed_pending(scope_of(bot))
    return memory


def remember(bot: Instance, *moments: datetime) -> None:
    drafts = [MemoryDraft(content=f"Remembered at {moment}") for moment in moments]
    save_many(scope_of(bot), drafts, written_at=list(moments))


def test_an_empty_instance_says_what_to_do_next(alice: Client, quiet: Instance) -> None:
    html = page(alice)
    assert "Support bot remembers nothing yet" in html
    for next_step in (
        "/memory/new?instance=support-bot",
        "/memory/import?instance=support-bot",
        "/keys/new?instance=support-bot",
    ):
        assert f'href="{next_step}"' in html
    assert "What is remembered" not in html
    assert NOTHING not in html


@pytest.mark.parametrize(("path", "heading"), [("/overview", "Overview"), ("/recall", "Recall"), ("/memory", "Memory")])
def test_without_any_instance_a_page_keeps_its_name(superadmin: Client, path: str, heading: str) -> None:
    html = superadmin.get(path).content.decode()
    assert f"<h1>{heading}</h1>" in html
    assert "No instance to show yet" in html


def test_what_is_remembered(alice: Client, quiet: Instance) -> None:
    make_memories(quiet, 3, category="fact")
    make_memory(quiet, category="event", pinned=True)
    embed_pending(scope_of(quiet))
    make_memory(quiet, category="event")
    html = page(alice)
    assert figure(html, "Memories") == "5"
    assert figure(html, "Pinned") == "1"
    assert figure(html, "Added in 30 days") == "5"
    assert figure(html, "Vectors ready") == "4 of 5"
    for category, n, length in (("fact", 3, "100.0"), ("event", 2, "66.7"), ("decision", 0, "0.0")):
        bar = html.split(f'href="/memory?instance=support-bot&amp;category={category}"')[1].split("</a>")[0]
        assert f'class="{category}" width="{length}"' in bar
        assert f'<span class="n">{n}</span>' in bar
    assert NOTHING in html


def test_its_numbers_lead_to_lists_that_are_as_long(alice: Client, quiet: Instance) -> None:
    make_memories(quiet, 2, pinned=True)
    remember(quiet, timezone.now() - timedelta(days=40))
    html = page(alice)
    assert figure(html, "Added in 30 days") == "2"
    links = re.findall(r'href="(/memory\?[^"]+)">2</a>', html)
    assert len(links) == 2
    for link in links:
        assert "2 memories match" in page(alice, link.replace("&amp;", "&"))


def test_without_an_embedder_no_vectors_are_counted(alice: Client, support: Instance) -> None:
    make_memory(support)
    assert figure(page(alice), "Vectors ready") == "None: no embedder"


def test_days_are_those_of_the_reader(alice: Client, quiet: Instance) -> None:
    now = timezone.now()
    # 23:30 in London is half past eight in the morning of the next day in Tokyo. 35 days ago is too long ago.
    evening = datetime.combine(now.date(), datetime.min.time(), UTC) - timedelta(days=3, minutes=30)
    remember(quiet, now - timedelta(days=35), evening)
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        alice.cookies["tz"] = zone
        with timezone.override(zone):
            there = timezone.localtime(evening)
        html = page(alice)
        assert f"1 in 30 days, most on {there.day} {there:%B}: 1." in html
        assert f"<title>{there.day} {there:%B}: 1</title>" in html
        assert f"<tr><td>{there:%a} {there.day} {there:%b}</td><td" in html


def test_how_it_is_used(alice: Client, quiet: Instance) -> None:
    Instance.objects.filter(pk=quiet.pk).update(memory_enabled=True)
    memory = make_memory(quiet, "Refunds take five days.")
    make_memory(quiet, "The office dog is called Rex.")
    embed_pending(scope_of(quiet))
    for _ in range(2):
        recall(scope_of(quiet), RecallRequest(query="How long do refunds take?", limit=1))
    recall(scope_of(quiet), RecallRequest(query="refunds"), mode="keyword")
    recall(scope_of(quiet), RecallRequest(query="zzzz qqqq", limit=1))
    Memory.objects.filter(instance=quiet).update(access_count=0)
    Recall.objects.filter(instance=quiet, search_mode="recency").update(memory_ids=[])
    Memory.objects.filter(pk=memory.pk).update(access_count=3, last_accessed_at=timezone.now())
    html = page(alice)
    assert figure(html, "Recalls in 30 days") == "4"
    assert figure(html, "Found nothing in 7 days") == "1 of 4"
    assert figure(html, "Without vectors in 7 days") == "1 of 4"
    assert figure(html, "Never recalled") == "1 of 2"
    most = html.split('id="most"')[1].split("</ol>")[0]
    assert f'href="/memory/{memory.id}?instance=support-bot"' in most
    assert "3 times, last" in most
    assert "Rex" not in most


def test_five_are_recalled_most(alice: Client, quiet: Instance) -> None:
    for n, memory in enumerate(make_memories(quiet, 7)):
        Memory.objects.filter(pk=memory.pk).update(content=f"Used {n}", access_count=n, last_accessed_at=timezone.now())
    html = page(alice)
    assert re.findall(r"Used \d", html) == ["Used 6", "Used 5", "Used 4", "Used 3", "Used 2"]
    assert "1 time, last" not in html
    assert figure(html, "Never recalled") == "1 of 7"


def test_uses_are_counted_once_they_are_folded(alice: Client, quiet: Instance) -> None:
    Instance.objects.filter(pk=quiet.pk).update(memory_enabled=True)
    make_memory(quiet, "Refunds take five days.")
    recall(scope_of(quiet), RecallRequest(query="refunds"))
    assert "No memory has been given to the assistant yet." in page(alice)
    fold_uses(quiet.id)
    assert "1 time, last" in page(alice)


def test_an_instance_without_a_log_says_so(alice: Client, quiet: Instance) -> None:
    Instance.objects.filter(pk=quiet.pk).update(recall_log_days=0)
    make_memory(quiet)
    html = page(alice)
    assert "keeps no log of recalls" in html
    assert "Found nothing" not in html
    Instance.objects.filter(pk=quiet.pk).update(recall_log_days=14)
    html = page(alice)
    assert figure(html, "Recalls in 14 days") == "0"
    assert "Nothing was recalled in the last 14 days." in html


def test_what_else_there_is(alice: Client, quiet: Instance) -> None:
    memory = settled(quiet)
    make_conversation(quiet, "Hello")
    make_procedure(quiet)
    attach(scope_of(quiet), memory.id, io.BytesIO(b"A note"), name="note.txt")
    html = page(alice)
    for title in ("Conversations", "Procedures"):
        assert f'<dt>{title}</dt><dd><a href="/{title.lower()}?instance=support-bot">1</a></dd>' in html
    assert figure(html, "Files attached to memories") == "1"


def test_the_worker_and_the_settings_need_somebody(alice: Client, support: Instance) -> None:
    html = page(alice)
    assert "No worker is running. Start" in html
    assert 'href="/instances/support-bot/settings#openai-key"' in html
    assert "remembers nothing yet" in html


def test_waiting_for_review(alice: Client, quiet: Instance) -> None:
    settled(quiet)
    waiting = make_waiting(quiet)
    html = page(alice)
    assert '<a href="/memory/review?instance=support-bot"><b>1</b> memory waits for review</a>' in html
    assert NOTHING not in html
    approve(scope_of(quiet), waiting.id)
    embed_pending(scope_of(quiet))
    assert NOTHING in page(alice)


@pytest.mark.parametrize(("kind", "words"), [("duplicate", "possible duplicate"), ("conflict", "possible conflict")])
def test_duplicates_and_conflicts(alice: Client, quiet: Instance, kind: str, words: str) -> None:
    pair = make_pair(settled(quiet), settled(quiet), kind=kind)
    html = page(alice)
    assert f'href="/memory/duplicates?instance=support-bot&amp;kind={kind}"><b>1</b> {words}' in html
    keep_both(scope_of(quiet), [pair.id])
    assert NOTHING in page(alice)


def test_failed_jobs_of_the_last_day(alice: Client, quiet: Instance) -> None:
    settled(quiet)
    job = make_failed_job(quiet)
    make_failed_job(quiet)
    html = page(alice)
    assert '<a href="/activity?instance=support-bot&amp;state=failed"><b>2</b> jobs failed in the last 24 hours' in html
    Job.objects.filter(instance=quiet).exclude(id=job.id).delete()
    assert "<b>1</b> job failed" in page(alice)
    Job.objects.filter(pk=job.pk).update(id=uuid7_at(timezone.now() - timedelta(hours=25)))
    assert NOTHING in page(alice)


def test_vectors_that_failed_or_are_late(alice: Client, quiet: Instance) -> None:
    rows = Memory.objects.filter(pk=settled(quiet).pk)
    rows.update(embedding="failed")
    href = '<a href="/memory?instance=support-bot&amp;embedding='
    assert f'{href}failed"><b>1</b> memory could not be given a vector' in page(alice)
    rows.update(embedding="pending")
    assert NOTHING in page(alice)
    rows.update(updated_at=timezone.now() - timedelta(hours=2))
    assert f'{href}pending"><b>1</b> memory older than an hour has no vector yet' in page(alice)
    embed_pending(scope_of(quiet))
    assert NOTHING in page(alice)


def test_what_expires_soon(alice: Client, quiet: Instance) -> None:
    now = timezone.now()
    for days in (8, 6, 2, 1, 3, 4, 5):
        make_memory(quiet, f"In {days}", expiresAt=(now + timedelta(days=days)).isoformat())
    embed_pending(scope_of(quiet))
    html = page(alice)
    assert "<b>6</b> memories expire within seven days" in html
    shown = html.split('class="soonest"')[1].split("</ol>")[0]
    assert re.findall(r"In \d", shown) == ["In 1", "In 2", "In 3", "In 4", "In 5"]
    assert "These are the first of them." in html
    Memory.objects.filter(instance=quiet, expires_at__lt=now + timedelta(days=7)).update(expires_at=now)
    html = page(alice)
    assert NOTHING in html
    assert figure(html, "Memories") == "1"
    assert figure(html, "Added in 30 days") == "1"


def test_private_memories_of_others_do_not_count(
    alice: Client, superadmin: Client, quiet: Instance, signed_in: Callable[[User], Client]
) -> None:
    bob = signed_in(make_user("bob", quiet))
    soon = (timezone.now() + timedelta(days=1)).isoformat()
    secret = {"visibility": "private", "owner": "bob"}
    memory = make_memory(quiet, "A secret of Bob", pinned=True, category="event", expiresAt=soon, **secret)
    Memory.objects.filter(pk=memory.pk).update(access_count=9, last_accessed_at=timezone.now(), embedding="failed")
    make_pair(memory, make_memory(quiet, "Another secret", **secret))
    attach(scope_of(quiet), memory.id, io.BytesIO(b"A secret file"), name="secret.txt")
    assert "remembers nothing yet" in page(alice)
    assert "secret" not in page(alice)
    make_waiting(quiet, "A third secret", **secret)
    make_memory(quiet, "Known to all")
    html = page(alice)
    assert "secret" not in html
    assert NOTHING in html
    assert (figure(html, "Memories"), figure(html, "Added in 30 days")) == ("1", "1")
    assert (figure(html, "Pinned"), figure(html, "Never recalled")) == ("0", "1 of 1")
    assert (figure(html, "Vectors ready"), figure(html, "Files attached to memories")) == ("0 of 1", "0")
    for client in (bob, superadmin):
        html = page(client)
        assert (figure(html, "Memories"), figure(html, "Added in 30 days")) == ("3", "3")
        assert (figure(html, "Pinned"), figure(html, "Never recalled")) == ("1", "2 of 3")
        assert "A secret of Bob" in html
        assert "<b>1</b> memory waits for review" in html
        assert "<b>1</b> possible duplicate" in html
    reads = AuditEntry.objects.filter(instance=quiet, action=READ_PRIVATE)
    assert [entry.memory_ids for entry in reads] == [[memory.id]]


def test_another_instance_does_not_count(alice: Client, quiet: Instance, sales: Instance) -> None:
    settled(quiet)
    make_pair(make_memory(sales, "A secret"), make_memory(sales, pinned=True))
    make_waiting(sales)
    make_failed_job(sales)
    make_conversation(sales, "Hello")
    make_procedure(sales)
    recall(scope_of(sales), RecallRequest(query="secret"))
    fold_uses(sales.id)
    html = page(alice)
    assert NOTHING in html
    assert "secret" not in html
    assert [figure(html, title) for title in ("Memories", "Pinned", "Recalls in 30 days")] == ["1", "0", "0"]
    assert [figure(html, title) for title in ("Conversations", "Procedures")] == ["0", "0"]


def test_what_it_says_is_text(alice: Client, quiet: Instance) -> None:
    script = "<script>alert(1)</script>"
    soon = (timezone.now() + timedelta(days=1)).isoformat()
    memory = make_memory(quiet, script, expiresAt=soon)
    Memory.objects.filter(pk=memory.pk).update(access_count=1, last_accessed_at=timezone.now())
    Instance.objects.filter(pk=quiet.pk).update(name=script)
    html = page(alice)
    assert script not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 3
    assert " style=" not in html


def test_it_is_the_first_link_and_only_read(alice: Client, quiet: Instance) -> None:
    html = page(alice, f"{PAGE}&page=x&category=nonsense&unknown=1")
    assert re.search(r'aria-label="Main">\s*<ul>\s*<li>\s*<a href="/overview\?instance=support-bot" aria-cur', html)
    assert alice.post(PAGE).status_code == 405


def test_without_an_instance_it_opens_the_last_one(alice: Client, support: Instance) -> None:
    response = alice.get("/overview")
    assert (response.status_code, response["Location"]) == (302, PAGE)


def test_strangers(client: Client, mallory: Client, support: Instance, sales: Instance) -> None:
    make_memory(support, "A secret")
    assert mallory.get(PAGE).status_code == 404
    assert mallory.get("/overview?instance=no-such-bot").status_code == 404
    assert "secret" not in page(mallory, "/overview?instance=sales-bot")
    response = client.get(PAGE)
    assert response.status_code == 302
    assert response["Location"].startswith("/login?next=/overview")


def test_more_than_is_counted(alice: Client, quiet: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lower limit does the same as more memories."""
    monkeypatch.setattr("memories.overview.COUNTED_UP_TO", 3)
    monkeypatch.setattr("memories.views.overview.COUNTED_UP_TO", 3)
    make_memories(quiet, 6, pinned=True)
    html = page(alice)
    assert figure(html, "Pinned") == "3+"
    assert figure(html, "Vectors ready") == "&lt; 3 of 6"
    Memory.objects.filter(instance=quiet).update(access_count=1, last_accessed_at=timezone.now())
    Memory.objects.filter(instance=quiet).update(embedding="failed")
    html = page(alice)
    assert figure(html, "Never recalled") == "&lt; 3 of 6"
    assert "<b>4+</b> memories could not be given a vector" in html


def test_more_than_anybody_looks_at(alice: Client, quiet: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.overview.MANY", 2)
    monkeypatch.setattr("memories.views.overview.MANY", 2)
    first, *others = make_memories(quiet, 6)
    for other in others[:4]:
        make_pair(first, other)
    make_pair(first, others[4], kind="conflict")
    html = page(alice)
    assert "<b>2+</b> possible duplicates" in html
    assert "<b>1</b> possible conflict" in html
