"""Listing jobs, retrying failed ones, and failing lost ones."""

from datetime import timedelta
from io import BytesIO
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

from accounts.access import Actor, Scope
from instances.models import Instance
from memories import activity
from memories.activity import JobFilters
from memories.embedding.backfill import ask_for_embedding
from memories.models import Job
from memories.transfer import uploads
from memoryconsole.errors import Conflict, NotAllowed, NotFound
from memoryconsole.ids import uuid7_at
from tests.factories import make_conversation, make_failed_job, make_instance, scope_of

pytestmark = pytest.mark.django_db


def job_from(bot: Instance, ago: timedelta, **fields: Any) -> Job:
    moment = timezone.now() - ago
    values = {"kind": "extract-memories", "state": "done", "actor": "job x", "created_at": moment, **fields}
    return Job.objects.create(instance=bot, id=uuid7_at(moment), **values)


def test_the_last_day(bot: Instance, scope: Scope) -> None:
    assert activity.last_day(scope) == activity.LastDay(0, 0, 0, 0, 0)
    job_from(bot, timedelta(hours=1), result={"created": 3, "updated": 1, "flagged": 2, "seen": 9}, tokens=700)
    job_from(bot, timedelta(hours=2), result={"created": 4}, tokens=300)
    job_from(bot, timedelta(hours=3), state="failed")
    job_from(bot, timedelta(hours=25), result={"created": 100}, tokens=100, state="failed")
    job_from(make_instance(), timedelta(hours=1), result={"created": 50}, tokens=50)
    assert activity.last_day(scope) == activity.LastDay(created=7, updated=1, flagged=2, tokens=1000, failed=1)


def test_filters_and_order(bot: Instance, scope: Scope) -> None:
    old = job_from(bot, timedelta(hours=3))
    failed = job_from(bot, timedelta(hours=2), state="failed")
    other = job_from(bot, timedelta(hours=1), kind="tell-episode")
    job_from(make_instance(), timedelta(hours=1))
    assert activity.job_page(scope, JobFilters(), number=1, size=10).rows == [other, failed, old]
    assert list(activity.jobs(scope, JobFilters(state=Job.State.FAILED))) == [failed]
    assert list(activity.jobs(scope, JobFilters(kind="tell-episode"))) == [other]
    assert list(activity.jobs(scope, JobFilters(kind="no-such-kind"))) == []
    assert not activity.is_busy(scope)
    job_from(bot, timedelta(0), state="queued")
    assert activity.is_busy(scope)


def test_vectors_are_tried_again_with_the_same_limit(bot: Instance, scope: Scope) -> None:
    failed = make_failed_job(bot, payload={"limit": 7})
    again = activity.retry(scope, failed.id)
    assert again is not None
    assert (again.id != failed.id, again.kind, again.state, again.payload) == (
        True, "embed-memories", "queued", {"limit": 7},
    )  # fmt: skip
    failed.refresh_from_db()
    assert failed.state == "failed"


def test_a_conversation_is_tried_again_once(bot: Instance, scope: Scope) -> None:
    conversation = make_conversation(bot, "Hello")
    failed = job_from(bot, timedelta(hours=1), state="failed", conversation_id=conversation.id)
    again = activity.retry(scope, failed.id)
    assert again is not None
    assert (again.kind, again.conversation_id, again.state) == ("extract-memories", conversation.id, "queued")
    assert activity.retry(scope, failed.id) is None


def test_only_what_failed_is_tried_again(bot: Instance, scope: Scope) -> None:
    running = ask_for_embedding(scope)
    with pytest.raises(Conflict, match="Only what has failed"):
        activity.retry(scope, running.id)
    failed = make_failed_job(bot)
    with pytest.raises(NotFound):
        activity.retry(scope_of(make_instance()), failed.id)
    with pytest.raises(NotAllowed):
        activity.retry(Scope(bot, Actor(kind="key", name="reader", read_only=True)), failed.id)


def test_a_job_whose_worker_is_gone_for_good_has_failed(bot: Instance, scope: Scope) -> None:
    lost, alive, fresh = (ask_for_embedding(scope) for _ in range(3))
    ProcrastinateJob.objects.filter(args__job_id=str(lost.id)).update(status="failed")
    ProcrastinateJob.objects.filter(args__job_id=str(fresh.id)).update(status="failed")
    long_ago = timezone.now() - timedelta(hours=1)
    Job.objects.filter(id__in=[lost.id, alive.id]).update(state="running", created_at=long_ago)
    assert activity.fail_lost(scope) == 1
    lost.refresh_from_db()
    assert (lost.state, lost.error, lost.finished_at is not None) == (
        "failed", "The worker ended again and again while doing this, so it was given up.", True,
    )  # fmt: skip
    states = dict(Job.objects.values_list("id", "state"))
    assert (states[alive.id], states[fresh.id]) == ("running", "queued")
    assert activity.fail_lost(scope_of(make_instance())) == 0


def test_an_import_whose_web_server_is_gone_has_failed_and_its_file_is_removed(bot: Instance, scope: Scope) -> None:
    lost, confirmed, waiting = (
        uploads.keep_upload(scope, BytesIO(b'{"content": "Tea"}\n'), name="tea.jsonl", format=None, dry_run=False)
        for _ in range(3)
    )
    long_ago = timezone.now() - timedelta(hours=1)
    Job.objects.update(created_at=long_ago)
    Job.objects.filter(id=lost.id).update(state="running", started_at=long_ago)
    Job.objects.filter(id=confirmed.id).update(state="running", started_at=timezone.now())
    app.configure_task("import_memories").defer(
        instance_id=str(bot.id), job_id=str(waiting.id), path=waiting.payload["path"], actor={}
    )
    assert activity.fail_lost(scope) == 1
    states = dict(Job.objects.values_list("id", "state"))
    assert (states[lost.id], states[confirmed.id], states[waiting.id]) == ("failed", "running", "queued")
    lost.refresh_from_db()
    assert lost.error == (
        "Something went wrong on the server. What was imported until then stays; import the file again to go on."
    )
    assert len(default_storage.listdir(f"imports/{bot.id}")[1]) == 2


def test_finished_jobs_are_forgotten_after_a_month(bot: Instance, scope: Scope) -> None:
    for state in Job.State.values:
        job_from(bot, timedelta(days=31), state=state)
        job_from(bot, timedelta(days=29), state=state)
    assert activity.forget_old(scope) == 2
    assert sorted(Job.objects.values_list("state", flat=True)) == sorted([*Job.State.values, "queued", "running"])
