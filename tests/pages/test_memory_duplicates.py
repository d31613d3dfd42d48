"""GET /memory/duplicates, POST /memory/duplicates/find, GET and POST /memory/duplicates/<id>, POST …/bulk"""

import pytest
from django.test import Client

from instances.models import Instance
from memories.models import DuplicatePair, Job, Memory
from memories.review.pairing import ask_for_pairs, run_pairing
from tests.factories import make_memory, make_pair, scope_of

pytestmark = pytest.mark.django_db
LIST = "/memory/duplicates?instance=support-bot"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def pair(support: Instance) -> DuplicatePair:
    return make_pair(make_memory(support, "Ann likes <tea>"), make_memory(support, "Ann likes <tea> a lot"))


def url(pair: DuplicatePair) -> str:
    return f"/memory/duplicates/{pair.id}?instance=support-bot"


def page(client: Client, address: str = LIST) -> str:
    return client.get(address).content.decode()


def test_before_anybody_has_looked(alice: Client, support: Instance) -> None:
    html = page(alice)
    assert "Nobody has looked for duplicates yet" in html
    assert 'name="threshold" value="0.9"' in html


def test_looking(alice: Client, support: Instance) -> None:
    find = "/memory/duplicates/find?instance=support-bot"
    html = alice.post(find, {"threshold": "0.85"}, follow=True).content.decode()
    job = Job.objects.get()
    assert (job.kind, job.payload, job.actor) == ("find-duplicates", {"threshold": 0.85}, "user alice")
    assert "waiting for the worker" in html
    assert 'hx-trigger="every 3s" hx-swap="outerHTML" hx-target="#duplicates"' in html
    assert "Nothing found so far" in html
    Job.objects.update(state="running", done=3, total=10)
    fragment = alice.get(LIST, headers=HTMX).content.decode()
    assert '<progress id="pairing-progress" value="3" max="10">' in fragment
    Job.objects.update(state="done", done=10, finished_at=job.created_at)
    fragment = alice.get(LIST, headers=HTMX).content.decode()
    assert "every 3s" not in fragment
    assert "No two memories say nearly the same" in fragment
    assert "Show what was found" not in fragment


def test_while_looking_what_is_shown_already_stays(alice: Client, support: Instance, pair: DuplicatePair) -> None:
    ask_for_pairs(scope_of(support))
    assert 'hx-select="#pairing" hx-target="this"' in page(alice)
    Job.objects.update(state="done", done=10, finished_at=Job.objects.get().created_at)
    polled = alice.get(LIST, headers={**HTMX, "HX-Target": "pairing"}).content.decode()
    assert "Show what was found" in polled
    paged = alice.get(LIST, headers={**HTMX, "HX-Target": "duplicates-page"}).content.decode()
    assert "Show what was found" not in paged


def test_without_vectors_it_does_not_say_that_nothing_is_alike(alice: Client, support: Instance) -> None:
    for _ in range(2):
        make_memory(support, "Ann likes tea", dedupe="create")
    job = ask_for_pairs(scope_of(support))
    run_pairing(scope_of(support), str(job.id))
    html = page(alice)
    assert "There was nothing to compare" in html
    assert '<a href="/instances/support-bot/settings#embedder">' in html
    assert "No two memories say nearly the same" not in html


@pytest.mark.parametrize("threshold", ["", "0.2", "1.5", "x"])
def test_a_wrong_threshold(alice: Client, support: Instance, threshold: str) -> None:
    find = "/memory/duplicates/find?instance=support-bot"
    html = alice.post(find, {"threshold": threshold}, follow=True).content.decode()
    assert "Choose a similarity from 0.5 to 1." in html
    assert not Job.objects.exists()


def test_groups(alice: Client, support: Instance, pair: DuplicatePair) -> None:
    conflict = make_pair(make_memory(support, "Room 12 is free"), make_memory(support, "Room 14 is free"), "conflict")
    html = page(alice)
    assert html.count("<article") == 2
    assert "Ann likes &lt;tea&gt;<ins>" in html
    assert "Possible conflict: numbers or dates" in html
    assert str(conflict.id) not in page(alice, f"{LIST}&kind=duplicate")
    assert str(pair.id) not in page(alice, f"{LIST}&kind=conflict")


def test_pages(alice: Client, support: Instance) -> None:
    for n in range(12):
        make_pair(make_memory(support, f"Fact {n}"), make_memory(support, f"The fact {n}"))
    assert "1–10 of 12" in page(alice)
    assert "11–12 of 12" in page(alice, f"{LIST}&page=2")
    assert "11–12 of 12" in page(alice, f"{LIST}&page=99")


def test_pairs_are_counted_as_on_the_overview_although_each_memory_stands_once(
    alice: Client, support: Instance
) -> None:
    first, second, third = (make_memory(support, f"Ann likes tea{end}") for end in ("", ".", "!"))
    make_pair(first, second)
    beside = make_pair(first, third)
    make_pair(second, third)
    make_pair(make_memory(support, "Room 12 is free"), make_memory(support, "Room 14 is free"), "conflict")
    assert "<b>3</b> possible duplicates" in page(alice, "/overview?instance=support-bot")
    html = page(alice, f"{LIST}&kind=duplicate")
    assert 'id="pair-count">3 pairs</span>' in html
    assert html.count("data-row") == 2
    assert "there are fewer rows than pairs" in html
    assert 'id="pair-count">4 pairs</span>' in page(alice)
    kept = alice.post(f"{url(beside)}&kind=duplicate", {"action": "keep"}, headers=HTMX).content.decode()
    assert 'hx-swap-oob="true">2 pairs</span>' in kept, "still of the kind that is shown"


def test_merge(alice: Client, pair: DuplicatePair) -> None:
    assert "Ann likes &lt;tea&gt; a lot</textarea>" in page(alice, url(pair))
    response = alice.post(url(pair), {"action": "merge", "content": "Ann loves tea"}, follow=True)
    assert response.redirect_chain == [(LIST, 302)]
    assert "Merged into “Ann loves tea”. The other one is superseded by it." in response.content.decode()
    assert dict(Memory.objects.values_list("id", "status")) == {pair.first_id: "active", pair.second_id: "superseded"}


def test_it_says_who_will_read_it_when_the_two_differ(alice: Client, support: Instance, pair: DuplicatePair) -> None:
    assert "narrower visibility" not in page(alice, url(pair))
    wide = make_memory(support, "Room 12 is free", visibility="org")
    differing = make_pair(wide, make_memory(support, "Room 12 is vacant"))
    html = page(alice, url(differing))
    assert "the narrower visibility of the two: <b>Instance</b>" in html
    assert '<span class="badge">Organisation</span>' in html
    assert '<span class="badge">Instance</span>' in html
    assert "Organisation, this one Instance" in page(alice)
    alice.post(url(differing), {"action": "merge", "content": "Room 12 is vacant"})
    wide.refresh_from_db()
    assert wide.visibility == "instance"


def test_a_wrong_text_is_asked_again(alice: Client, pair: DuplicatePair) -> None:
    fields = {"action": "merge", "content": " "}
    assert "This may not be empty." in alice.post(url(pair), fields).content.decode()
    response = alice.post(url(pair), fields, headers=HTMX)
    assert (response["HX-Retarget"], "This may not be empty." in response.content.decode()) == ("#dialog", True)
    assert alice.post(url(pair), {"action": "burn"}).status_code == 400
    assert Memory.objects.filter(listed=True).count() == 2


def test_keep_both_with_htmx(alice: Client, pair: DuplicatePair) -> None:
    html = alice.post(url(pair), {"action": "keep"}, headers=HTMX).content.decode()
    assert 'id="pair-count" hx-swap-oob="true">0 pairs</span>' in html
    assert "Both are kept" in html
    again = alice.post(url(pair), {"action": "keep"}, headers=HTMX)
    assert (again.status_code, "decided about it" in again.content.decode()) == (200, True)
    assert alice.post(url(pair), {"action": "keep"}).status_code == 404


def test_many_at_once(alice: Client, support: Instance, pair: DuplicatePair) -> None:
    conflict = make_pair(make_memory(support, "Room 12 is free"), make_memory(support, "Room 14 is free"), "conflict")
    bulk = "/memory/duplicates/bulk?instance=support-bot"
    ids = [str(pair.id), str(conflict.id)]
    assert "Nothing is selected." in alice.post(bulk, {"action": "merge"}, follow=True).content.decode()
    assert "Choose what to do" in alice.post(bulk, {"ids": ids}, follow=True).content.decode()
    html = alice.post(bulk, {"action": "merge", "ids": ids}, follow=True).content.decode()
    assert "Merged 1 duplicate into the older ones. 1 must be looked at one by one" in html
    assert Memory.objects.filter(listed=True).count() == 3
    assert "Kept both of 1 pair." in alice.post(bulk, {"action": "keep", "ids": ids}, follow=True).content.decode()
    assert alice.post(bulk, {"action": "keep", "ids": ["x"]}).status_code == 404


def test_strangers(mallory: Client, alice: Client, support: Instance, pair: DuplicatePair) -> None:
    assert mallory.get(LIST).status_code == 404
    assert mallory.get(url(pair).replace("support", "sales")).status_code == 404
    mallory.post("/memory/duplicates/bulk?instance=sales-bot", {"action": "merge", "ids": [str(pair.id)]})
    assert Memory.objects.filter(listed=True).count() == 2
    hers = make_pair(*(make_memory(support, "Secret", owner="bea", visibility="private") for _ in range(2)))
    assert "Secret" not in page(alice)
    assert alice.get(url(hers)).status_code == 404
