"""/recall/golden: golden queries are marked, changed, run and compared."""

import re

import pytest
from django.test import Client

from memories.models import GoldenQuery, Memory
from memories.recall.golden import GoldenDraft, mark, marks_for, save_golden
from memories.views import golden
from tests.factories import make_memory, scope_of

pytestmark = pytest.mark.django_db

QUESTION = "How long do refunds take?"


@pytest.fixture
def refund(support):
    return make_memory(support, "Refunds take five days", role="reference")


def send_mark(client: Client, memory: Memory, expected: str, **fields: str):
    values = {"query": QUESTION, "userId": "", "memory": str(memory.id), "expected": expected, **fields}
    headers = fields.pop("headers", {})
    return client.post("/recall/mark?instance=support-bot", values, headers=headers)


def page_of(client: Client, **parameters: object) -> str:
    response = client.get("/recall/golden", {"instance": "support-bot", **parameters})
    assert response.status_code == 200
    return response.content.decode()


def figures(page: str) -> dict[str, list[str]]:
    """The first table: the values of each figure, variant by variant."""
    table = page.partition('id="result"')[2].partition("</table>")[0]
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', table, re.DOTALL)
    return {title: re.findall(r"<div>([\d.–]+)", cells) for title, cells in rows}


def test_marking_makes_a_golden_query_and_comes_back(alice, support, refund):
    here = "/recall?instance=support-bot&query=refunds"
    response = send_mark(alice, refund, "yes", next=here)
    assert response["Location"] == here
    assert marks_for(scope_of(support), QUESTION, "") == {refund.id: True}
    page = alice.get("/recall", {"instance": "support-bot", "query": QUESTION}).content.decode()
    assert re.search(r'value="none" aria-pressed="true" aria-label="Expected', page)
    send_mark(alice, refund, "no")
    assert marks_for(scope_of(support), QUESTION, "") == {refund.id: False}
    send_mark(alice, refund, "none")
    assert marks_for(scope_of(support), QUESTION, "") == {}


def test_scripts_get_the_buttons_back(alice, support, refund):
    values = {"query": QUESTION, "userId": "", "memory": str(refund.id), "expected": "yes"}
    response = alice.post("/recall/mark?instance=support-bot", values, headers={"hx-request": "true"})
    assert response.content.decode().strip().startswith('<form class="mark"')
    assert b'value="none" aria-pressed="true"' in response.content


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example/recall", "/logout", ""])
def test_it_only_comes_back_to_recall(alice, refund, elsewhere):
    assert send_mark(alice, refund, "yes", next=elsewhere)["Location"] == "/recall?instance=support-bot"


def test_marking_what_is_not_there(alice, support, sales):
    foreign = make_memory(sales, "A secret of the sales bot")
    assert send_mark(alice, foreign, "yes").status_code == 404
    assert not GoldenQuery.objects.exists()


@pytest.mark.parametrize("field", [{"query": " "}, {"query": "a\x00b"}, {"userId": "\x00"}, {"userId": "x" * 201}])
def test_marking_with_what_is_no_question_or_no_user(alice, refund, field):
    assert send_mark(alice, refund, "yes", **field).status_code == 400


def test_an_empty_list_says_how_to_begin(alice, support):
    assert "No golden queries yet" in page_of(alice)
    assert "No golden queries yet" in page_of(alice, run="yes")


def test_the_list_shows_what_is_expected_and_what_is_not(alice, support, sales, refund):
    parking = make_memory(support, "Parking is free", role="reference")
    draft = GoldenDraft(query=QUESTION, user_id="bob", expected=[refund.id], unexpected=[parking.id])
    save_golden(scope_of(support), draft)
    theirs = make_memory(sales, "A secret of the sales bot")
    save_golden(scope_of(sales), GoldenDraft(query="A secret question", expected=[theirs.id]))
    page = page_of(alice)
    assert QUESTION in page
    assert "for bob" in page
    assert "Refunds take five days" in page
    assert "Parking is free" in page
    assert "secret" not in page


def test_a_run_compares_and_a_changed_setting_is_beside_it(alice, support, refund):
    make_memory(support, "Refunds, refunds: how long do they take, we asked", role="reference")
    save_golden(scope_of(support), GoldenDraft(query=QUESTION, expected=[refund.id]))
    now = figures(page_of(alice, run="yes"))
    assert now["Recall@k"] == ["1.000", "0.000", "1.000"]
    assert set(now) == {"Recall@k", "MRR", "nDCG@k", "Unexpected ones given"}
    page = page_of(alice, run="yes", limit="1", threshold="0.3")
    assert figures(page)["Recall@k"] == ["1.000", "0.000", "1.000", "0.000"]
    columns = re.findall(r'<th scope="col" class="numeric">(.*?)</th>', page)
    assert columns == ["Current, k = 8", "Meaning alone, k = 8", "Words alone, k = 8", "Changed, k = 1"]
    assert page.count('data-title="Changed, k = 1"') == 5
    assert "missed: Refunds take five days" in page
    assert "Save this setting" in page
    assert 'name="limit" value="1"' in page
    assert 'name="threshold" value="0.3"><' not in page


def test_a_run_says_why_it_goes_by_words_alone_or_finds_nothing(alice, support, refund):
    save_golden(scope_of(support), GoldenDraft(query=QUESTION, expected=[refund.id]))
    assert "Search finds words but not meaning." in page_of(alice, run="yes")
    support.memory_enabled = False
    support.save()
    assert "Memory is switched off for this instance." in page_of(alice, run="yes")


def test_saving_the_changed_setting(alice, support):
    response = alice.post("/recall/golden/settings?instance=support-bot", {"limit": "3", "threshold": "0.3"})
    assert response["Location"] == "/recall/golden?instance=support-bot&run=yes"
    support.refresh_from_db()
    assert (support.recall_limit, support.recall_threshold) == (3, 0.3)
    assert (
        "Nothing differs"
        in alice.post("/recall/golden/settings?instance=support-bot", {"limit": "3"}, follow=True).content.decode()
    )
    assert alice.post("/recall/golden/settings?instance=support-bot", {"limit": "500"}).status_code == 400
    support.refresh_from_db()
    assert support.recall_limit == 3


def test_a_wrong_setting_is_said(alice, support, refund):
    save_golden(scope_of(support), GoldenDraft(query=QUESTION, expected=[refund.id]))
    page = page_of(alice, run="yes", limit="many")
    assert "Memories found: Enter a whole number." in page
    assert 'id="result"' not in page


def test_a_long_list_is_run_in_part(alice, support, refund, monkeypatch):
    monkeypatch.setattr(golden, "RUN_AT_ONCE", 1)
    for query in ("Refunds?", "How long?"):
        save_golden(scope_of(support), GoldenDraft(query=query, expected=[refund.id]))
    page = page_of(alice, run="yes")
    assert "1 of 2 queries" in page
    assert "manage.py evaluate" in page


def test_changing_a_golden_query(alice, support, refund):
    parking = make_memory(support, "Parking is free", role="reference")
    row = save_golden(scope_of(support), GoldenDraft(query=QUESTION, expected=[refund.id, parking.id]))
    url = f"/recall/golden/{row.id}?instance=support-bot"
    assert "Parking is free" in alice.get(url).content.decode()
    values = {"query": "Refunds?", "userId": "bob", f"mark-{refund.id}": "no", f"mark-{parking.id}": "none"}
    assert alice.post(url, values)["Location"] == "/recall/golden?instance=support-bot"
    assert marks_for(scope_of(support), "Refunds?", "bob") == {refund.id: False}
    assert GoldenQuery.objects.get().id == row.id


@pytest.mark.parametrize(("query", "said"), [("", "This may not be empty."), ("Taken?", "such a golden query already")])
def test_a_golden_query_must_be_a_question_of_its_own(alice, support, refund, query, said):
    save_golden(scope_of(support), GoldenDraft(query="Taken?", expected=[refund.id]))
    row = save_golden(scope_of(support), GoldenDraft(query=QUESTION, expected=[refund.id]))
    values = {"query": query, f"mark-{refund.id}": "none"}
    assert said in alice.post(f"/recall/golden/{row.id}?instance=support-bot", values).content.decode()
    assert marks_for(scope_of(support), QUESTION, "") == {refund.id: True}


def test_what_one_may_not_see_stays_marked(alice, support, refund):
    private = make_memory(support, "Bob is allergic", visibility="private", owner="bob")
    row = mark(scope_of(support), query=QUESTION, user_id="", raw_memory_id=private.id, expected=True)
    assert b"allergic" not in alice.get(f"/recall/golden/{row.id}?instance=support-bot").content
    alice.post(f"/recall/golden/{row.id}?instance=support-bot", {"query": "Other words", "userId": ""})
    assert marks_for(scope_of(support), "Other words", "") == {private.id: True}


def test_deleting_a_golden_query_leaves_the_memories(alice, support, refund):
    row = save_golden(scope_of(support), GoldenDraft(query=QUESTION, expected=[refund.id]))
    question = page_of(alice).split('aria-label="Delete this golden query"')[1].split("</details>")[0]
    assert f'action="/recall/golden/{row.id}/delete?instance=support-bot"' in question
    assert "Its marks go with it, not the memories." in question
    assert alice.get(f"/recall/golden/{row.id}/delete?instance=support-bot").status_code == 405
    alice.post(f"/recall/golden/{row.id}/delete?instance=support-bot")
    assert not GoldenQuery.objects.exists()
    assert Memory.objects.filter(id=refund.id).exists()


def test_a_golden_query_of_another_instance_is_not_there(mallory, support, sales, refund):
    row = save_golden(scope_of(support), GoldenDraft(query=QUESTION, expected=[refund.id]))
    for url in (f"/recall/golden/{row.id}", f"/recall/golden/{row.id}/delete"):
        assert mallory.post(f"{url}?instance=sales-bot", {"query": "x"}).status_code == 404
    assert GoldenQuery.objects.get().query == QUESTION
