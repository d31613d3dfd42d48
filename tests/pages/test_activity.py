"""GET /activity and POST /activity/<id>/retry"""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from instances.models import Instance
from memories.embedding.backfill import ask_for_embedding
from memories.models import Job
from tests.factories import make_conversation, make_failed_job, make_memories, scope_of

pytestmark = pytest.mark.django_db
PAGE = "/activity?instance=support-bot"
HTMX = {"HX-Request": "true"}


def page(client: Client, address: str = PAGE) -> str:
    return client.get(address).content.decode()


def learn(bot: Instance, **fields: object) -> Job:
    conversation = make_conversation(bot, "Hello", title="Renewal call")
    now = timezone.now()
    return Job.objects.create(
        instance=bot,
        actor="key crm",
        conversation_id=conversation.id,
        created_at=now,
        **{
            "kind": "extract-memories",
            "state": "done",
            "result": {"created": 3, "updated": 1, "flagged": 0, "seen": 2},
            "tokens": 1234,
            "started_at": now,
            "finished_at": now + timedelta(seconds=75),
            **fields,
        },
    )


def test_nothing_has_happened(alice: Client, support: Instance) -> None:
    html = page(alice)
    assert "The worker has had nothing to do yet" in html
    assert "hx-trigger" not in html.split('id="activity"')[1]


def test_what_a_run_has_learnt(alice: Client, support: Instance) -> None:
    job = learn(support)
    html = page(alice)
    assert "Learn from a conversation" in html
    assert f'href="/conversations/{job.conversation_id}?instance=support-bot"' in html
    assert "Renewal call" in html
    assert "3 created, 1 updated, 2 seen" in html
    assert "flagged" not in html.split("<tbody>")[1]
    assert "1,234" in html
    assert "1 min 15 s" in html
    assert "key crm" in html


def test_it_asks_again_only_while_something_is_going_on(alice: Client, support: Instance) -> None:
    make_memories(support, 3)
    job = ask_for_embedding(scope_of(support))
    html = page(alice)
    assert f'hx-get="{PAGE}" hx-trigger="every 3s"' in html
    assert '<progress value="0" max="3"' in html
    Job.objects.filter(pk=job.pk).update(state="running", done=2, attempts=2)
    fragment = alice.get(PAGE, headers=HTMX).content.decode()
    assert "<html" not in fragment
    assert '<progress value="2" max="3"' in fragment
    assert "attempt 2" in fragment
    Job.objects.filter(pk=job.pk).update(state="done", done=3)
    assert "every 3s" not in alice.get(PAGE, headers=HTMX).content.decode()


def test_failures_say_why_and_can_be_tried_again(alice: Client, support: Instance) -> None:
    failed = make_failed_job(support, "The key is <wrong>.")
    html = page(alice)
    assert "The key is &lt;wrong&gt;." in html
    assert "Try again" in html
    response = alice.post(f"/activity/{failed.id}/retry?instance=support-bot", follow=True)
    assert response.redirect_chain == [(PAGE, 302)]
    assert "Queued again." in response.content.decode()
    assert Job.objects.filter(state="queued").count() == 1


def test_one_that_waits_already_is_tried_now(alice: Client, support: Instance) -> None:
    failed = learn(support, state="failed")
    for said in ("Queued again.", "It was waiting already, and is tried now."):
        response = alice.post(f"/activity/{failed.id}/retry?instance=support-bot", follow=True)
        assert said in response.content.decode()
    assert Job.objects.filter(state="queued").count() == 1


def test_only_failures_can_be_tried_again(alice: Client, support: Instance) -> None:
    job = learn(support)
    response = alice.post(f"/activity/{job.id}/retry?instance=support-bot", follow=True)
    assert "Only what has failed can be tried again." in response.content.decode()


def test_filters(alice: Client, support: Instance) -> None:
    learn(support)
    make_failed_job(support)
    assert page(alice).count('id="job-') == 2
    assert page(alice, f"{PAGE}&state=failed").count('id="job-') == 1
    assert page(alice, f"{PAGE}&kind=extract-memories").count('id="job-') == 1
    assert "No work matches these filters" in page(alice, f"{PAGE}&state=queued")
    assert page(alice, f"{PAGE}&state=&kind=").count('id="job-') == 2
    assert "This filter cannot be used." in page(alice, f"{PAGE}&kind=%00")
    html = page(alice, f"{PAGE}&state=tired")
    assert "This filter cannot be used." in html
    assert html.count('id="job-') == 2


def test_pages(alice: Client, support: Instance) -> None:
    for _ in range(30):
        learn(support)
    assert "1–25 of 30" in page(alice)
    assert "26–30 of 30" in page(alice, f"{PAGE}&page=2")


def test_it_says_whether_the_worker_is_there(alice: Client, support: Instance) -> None:
    assert "No worker is running. Start" in page(alice)


def test_strangers(mallory: Client, support: Instance, sales: Instance) -> None:
    failed = make_failed_job(support, "A secret")
    assert mallory.get(PAGE).status_code == 404
    assert "A secret" not in page(mallory, "/activity?instance=sales-bot")
    for slug in ("support-bot", "sales-bot"):
        assert mallory.post(f"/activity/{failed.id}/retry?instance={slug}").status_code == 404
    assert not Job.objects.filter(state="queued").exists()


def test_an_import_says_what_came_of_it(alice: Client, support: Instance) -> None:
    report = {"rows": 4, "created": 2, "existing": 1, "leftOut": 0, "invalid": 1}
    fields = {"kind": "import-memories", "done": 7402, "total": 7402, "result": {}, "tokens": 0}
    job = learn(support, **{**fields, "payload": {"report": report, "dryRun": False}})
    html = page(alice)
    assert f'<a href="/memory/import/{job.id}?instance=support-bot">Import memories</a>' in html
    assert "2 created, 1 already there, 1 with problems" in html
    assert "7,402" not in html
    Job.objects.update(payload={"report": report, "dryRun": True})
    html = page(alice, f"{PAGE}&kind=import-memories")
    assert "2 to be created" in html
    assert ">Check an import</a>" in html


def test_a_search_for_duplicates_says_what_it_found(alice: Client, support: Instance) -> None:
    learn(support, kind="find-duplicates", result={"duplicates": 1, "conflicts": 2})
    assert "1 duplicate, 2 conflicts" in page(alice)


def test_a_failed_import_cannot_be_tried_again(alice: Client, support: Instance) -> None:
    job = learn(support, kind="import-memories", state="failed", payload={}, error="The file is gone.")
    assert f"retry-{job.id}" not in page(alice)
    response = alice.post(f"/activity/{job.id}/retry?instance=support-bot", follow=True)
    assert "Upload it again." in response.content.decode()
