"""POST /memory/embed and GET /memory/jobs/<id>: the line about missing vectors"""

import re

import pytest
from django.test import Client
from django.utils import timezone

from instances.models import Instance
from memories.embedding.backfill import ask_for_embedding, embed_pending, run_embedding
from memories.models import Job, Memory
from tests.factories import make_memories, make_memory, scope_of

pytestmark = pytest.mark.django_db


def line(client: Client, url: str = "/memory?instance=support-bot", **extra: object) -> str:
    """What the line says, as one line of HTML."""
    response = client.get(url, **extra)
    assert response.status_code == 200, response.status_code
    found = re.search(r'<div class="embedding" id="embedding".*?</div>', response.content.decode(), re.DOTALL)
    assert found
    return " ".join(found[0].split())


def test_it_says_how_many_are_missing_and_offers_to_make_them(alice: Client, offline: Instance) -> None:
    make_memories(offline, 3)
    html = line(alice)
    assert "3 memories have no vector yet: search finds them by words, not by meaning." in html
    assert 'action="/memory/embed?instance=support-bot"' in html
    assert "Embed now" in html
    Memory.objects.filter(instance=offline).update(embedding="failed")
    assert "3 memories have no vector yet" in line(alice)
    Memory.objects.filter(instance=offline).update(embedding="ready")
    make_memory(offline)
    assert "1 memory has no vector yet: search finds it by words, not by meaning." in line(alice)


def test_nothing_is_said_when_nothing_is_missing(alice: Client, offline: Instance) -> None:
    make_memories(offline, 3)
    embed_pending(scope_of(offline))
    html = line(alice)
    assert "vector" not in html
    assert "hx-get" not in html


def test_without_a_provider_there_is_no_button(alice: Client, support: Instance) -> None:
    make_memories(support, 3)
    html = line(alice)
    assert "Embed now" not in html
    assert "hx-get" not in html
    assert alice.post("/memory/embed?instance=support-bot")["Location"] == "/memory?instance=support-bot"
    assert not Job.objects.exists()


def test_asking_makes_a_job_and_shows_it(alice: Client, offline: Instance) -> None:
    make_memories(offline, 3)
    response = alice.post("/memory/embed?instance=support-bot")
    assert response.status_code == 302
    assert response["Location"] == "/memory?instance=support-bot"
    job = Job.objects.get(instance=offline)
    assert (job.kind, job.total, job.actor) == ("embed-memories", 3, "user alice")
    html = line(alice)
    assert "waiting for the worker" in html
    assert f'hx-get="/memory/jobs/{job.id}?instance=support-bot" hx-trigger="every 2s"' in html
    assert "Embed now" not in html


def test_htmx_gets_the_line_at_once(alice: Client, offline: Instance) -> None:
    make_memories(offline, 3)
    html = alice.post("/memory/embed?instance=support-bot", headers={"HX-Request": "true"}).content.decode()
    assert "waiting for the worker" in html
    assert "<html" not in html


def test_progress_until_it_is_done(alice: Client, offline: Instance) -> None:
    make_memories(offline, 3)
    job = ask_for_embedding(scope_of(offline))
    url = f"/memory/jobs/{job.id}?instance=support-bot"
    htmx = {"headers": {"HX-Request": "true"}}
    Job.objects.filter(id=job.id).update(state="running", done=1)
    html = line(alice, url, **htmx)
    assert '<progress id="embedding-progress" value="1" max="3">' in html
    assert "1 of 3 pieces" in html
    assert "every 2s" in html
    Job.objects.filter(id=job.id).update(done=0)
    run_embedding(scope_of(offline), str(job.id))
    html = line(alice, url, **htmx)
    assert "3 pieces of text have a vector now." in html
    assert "hx-get" not in html
    assert "vector" not in line(alice)


def test_what_goes_wrong_is_said(alice: Client, offline: Instance) -> None:
    make_memories(offline, 3)
    job = ask_for_embedding(scope_of(offline))
    url = f"/memory/jobs/{job.id}?instance=support-bot"
    Job.objects.filter(id=job.id).update(error="The <API> is away.")
    html = line(alice)
    assert "The &lt;API&gt; is away. It will be tried again." in html
    assert "every 2s" in html
    Job.objects.filter(id=job.id).update(state="failed", finished_at=timezone.now())
    html = line(alice, url)
    assert "Vectors could not be made: The &lt;API&gt; is away." in html
    assert "every 2s" not in html
    assert "Embed now" in html


def test_a_page_without_scripts_shows_the_job_too(alice: Client, offline: Instance) -> None:
    make_memories(offline, 3)
    job = ask_for_embedding(scope_of(offline))
    html = alice.get(f"/memory/jobs/{job.id}?instance=support-bot").content.decode()
    assert "<html" in html
    assert "waiting for the worker" in html


def test_another_model_is_said_while_the_old_vectors_serve(alice: Client, offline: Instance) -> None:
    make_memories(offline, 3)
    embed_pending(scope_of(offline))
    Instance.objects.filter(pk=offline.pk).update(embedding_model="an-older-model")
    html = line(alice)
    assert "Search goes on with the old vectors until every memory has one by" in html
    assert "Embed now" in html


def test_more_than_can_be_counted_quickly(alice: Client, offline: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.views.jobs.COUNTED_UP_TO", 2)
    make_memories(offline, 3)
    assert "More than 2 memories have no vector yet" in line(alice)


def test_other_peoples_private_memories_are_not_counted(alice: Client, offline: Instance) -> None:
    make_memory(offline, visibility="private", owner="bob")
    assert "no vector yet" not in line(alice)


def test_strangers_get_a_404(mallory: Client, alice: Client, offline: Instance) -> None:
    make_memories(offline, 3)
    job = ask_for_embedding(scope_of(offline))
    for slug in ("support-bot", "sales-bot", "no-such-bot"):
        assert mallory.get(f"/memory/jobs/{job.id}?instance={slug}").status_code == 404, slug
    assert mallory.post("/memory/embed?instance=support-bot").status_code == 404
    assert Job.objects.count() == 1
    for id in ("nonsense", "01a1e464-c166-76bb-b939-dd59bab3e80b", "%00"):
        assert alice.get(f"/memory/jobs/{id}?instance=support-bot").status_code == 404, id
