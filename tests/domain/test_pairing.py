"""The job that finds pairs of similar memories."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import UUID

import pytest
from django.db import connections
from procrastinate.contrib.django.models import ProcrastinateJob

from accounts.access import Scope
from instances.models import Instance
from memories import jobs
from memories.deletion import delete_memory
from memories.draft import MemoryChanges
from memories.embedding.backfill import embed_pending
from memories.models import DuplicatePair, Job, Memory
from memories.review import pairing
from memories.review.pairing import ask_for_pairs, remember_both
from memories.store import change
from tests.domain.looking import while_writing
from tests.factories import make_instance, make_memory, make_waiting, scope_of

pytestmark = pytest.mark.django_db
THRESHOLD = 0.7


@pytest.fixture
def bot() -> Instance:
    return make_instance("support-bot", embedder="offline")


def find_pairs(scope: Scope, threshold: float = THRESHOLD) -> Job:
    """Request a job, and run it as the worker would."""
    embed_pending(scope)
    job = ask_for_pairs(scope, threshold=threshold)
    queued = ProcrastinateJob.objects.filter(task_name="find_duplicates").latest("id")
    jobs.find_duplicates(**queued.args)
    job.refresh_from_db()
    return job


def found() -> set[tuple[str, str, str]]:
    texts = dict(Memory.objects.values_list("id", "content"))
    rows = DuplicatePair.objects.filter(state="open").values_list("first_id", "second_id", "kind")
    return {(texts[first], texts[second], kind) for first, second, kind in rows}


def test_duplicates_and_conflicts(bot: Instance, scope: Scope) -> None:
    make_memory(bot, "Refunds above 200 EUR need the approval of a manager")
    make_memory(bot, "Anna keeps two cats and a parrot")
    make_memory(bot, "Refunds above 500 EUR need the approval of a manager")
    make_memory(bot, "Refunds above 200 EUR always need the approval of a manager")
    job = find_pairs(scope)
    first, third, fourth = (
        "Refunds above 200 EUR need the approval of a manager",
        "Refunds above 500 EUR need the approval of a manager",
        "Refunds above 200 EUR always need the approval of a manager",
    )
    assert found() == {
        (first, third, "conflict"), (first, fourth, "duplicate"), (third, fourth, "conflict"),
    }  # fmt: skip
    assert (job.state, job.done, job.total, job.result) == ("done", 4, 4, {"duplicates": 1, "conflicts": 2})
    assert all(THRESHOLD <= pair.cosine <= 1 for pair in DuplicatePair.objects.all())
    assert Memory.objects.filter(listed=True).count() == 4


def test_the_threshold_is_the_instances_own_unless_another_is_given(bot: Instance, scope: Scope) -> None:
    assert ask_for_pairs(scope).payload == {"threshold": 0.9}


def test_only_one_looks_at_a_time(scope: Scope) -> None:
    assert ask_for_pairs(scope).id == ask_for_pairs(scope, threshold=0.8).id
    assert ProcrastinateJob.objects.filter(task_name="find_duplicates").count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_who_ask_at_once_get_the_same_job(bot: Instance) -> None:
    at_once = Barrier(4)

    def ask(_: int) -> UUID:
        try:
            at_once.wait(10)
            return ask_for_pairs(scope_of(bot)).id
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(ask, range(4)))) == 1
    assert Job.objects.count() == 1


def test_what_is_not_listed_or_somebody_elses_is_no_pair(bot: Instance, scope: Scope) -> None:
    text = "Refunds above 200 EUR need the approval of a manager"
    make_memory(bot, text)
    make_waiting(bot, text)
    make_memory(bot, text, owner="ann")
    make_memory(bot, text, owner="ann", visibility="private")
    make_memory(make_instance("sales-bot", embedder="offline"), text)
    make_memory(bot, text, key="k")
    make_memory(bot, "Something else altogether", key="k", dedupe="create")
    find_pairs(scope)
    assert found() == set()


def test_it_goes_on_where_it_was_left(bot: Instance, scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "BATCH", 2)
    for n in range(3):
        make_memory(bot, f"The parcel {n} was sent to Vienna yesterday in the morning")
        make_memory(bot, f"The parcel {n} was sent to Vienna yesterday in the early morning")
    embed_pending(scope)
    job = ask_for_pairs(scope, threshold=0.8)
    store, calls = pairing._store, []

    def die_the_second_time(*args: object) -> None:
        calls.append(args)
        if len(calls) == 2:
            raise SystemExit
        store(*args)

    monkeypatch.setattr(pairing, "_store", die_the_second_time)
    with pytest.raises(SystemExit):
        pairing.run_pairing(scope, str(job.id))
    job.refresh_from_db()
    assert (job.state, job.done) == ("running", 2)
    before = DuplicatePair.objects.count()
    pairing.run_pairing(scope, str(job.id))
    job.refresh_from_db()
    assert (job.state, job.done, job.total, job.attempts) == ("done", 6, 6, 2)
    assert DuplicatePair.objects.count() > before > 0


def test_what_is_not_alike_any_more_is_forgotten(bot: Instance, scope: Scope) -> None:
    make_memory(bot, "Refunds above 200 EUR need the approval of a manager")
    second = make_memory(bot, "Refunds above 200 EUR always need the approval of a manager")
    find_pairs(scope)
    assert len(found()) == 1
    change(scope, second.id, MemoryChanges(content="Anna keeps two cats and a parrot"))
    find_pairs(scope)
    assert found() == set()
    assert not DuplicatePair.objects.exists()


def test_what_was_dismissed_stays_dismissed(bot: Instance, scope: Scope) -> None:
    first = make_memory(bot, "Refunds above 200 EUR need the approval of a manager")
    second = make_memory(bot, "Refunds above 200 EUR always need the approval of a manager")
    remember_both(scope, second.id, first.id)
    find_pairs(scope)
    find_pairs(scope)
    assert found() == set()
    assert DuplicatePair.objects.get().state == "dismissed"


def test_pairs_go_with_their_memories(bot: Instance, scope: Scope) -> None:
    memories = [make_memory(bot, f"Refunds need the approval of a manager {n}") for n in ("", "now", "today")]
    find_pairs(scope)
    assert DuplicatePair.objects.count() == 3
    delete_memory(scope, memories[0].id)
    assert DuplicatePair.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_memory_that_is_deleted_meanwhile_is_in_no_pair(bot: Instance) -> None:
    scope = scope_of(bot)
    memories = [make_memory(bot, f"Refunds need the approval of a manager {n}") for n in ("", "now", "today")]
    embed_pending(scope)
    job = ask_for_pairs(scope, threshold=THRESHOLD)
    while_writing(lambda: delete_memory(scope, memories[1].id), pairing.run_pairing, scope, str(job.id))
    job.refresh_from_db()
    assert (job.state, job.result) == ("done", {"duplicates": 1, "conflicts": 0})
    pair = DuplicatePair.objects.get()
    assert (pair.first_id, pair.second_id) == (memories[0].id, memories[2].id)


def test_without_vectors_nothing_is_compared(bot: Instance, scope: Scope) -> None:
    make_memory(bot, "The same")
    make_memory(bot, "The same")
    job = ask_for_pairs(scope)
    pairing.run_pairing(scope, str(job.id))
    job.refresh_from_db()
    assert (job.state, job.done, job.total) == ("done", 0, 0)
