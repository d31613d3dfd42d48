"""/audit and /audit/export"""

import csv
import io
import json
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from instances.models import Instance
from memories.deletion import delete_memory
from memories.models import AuditEntry, Memory
from memories.recall.golden import mark
from memories.recall.recalling import RecallRequest, recall
from tests.factories import make_memories, make_memory, make_pair, make_waiting, scope_of

pytestmark = pytest.mark.django_db
URL = "/audit?instance=support-bot"


def text(response: Any) -> str:
    assert response.status_code == 200
    content: bytes = response.getvalue() if response.streaming else response.content
    return content.decode()


def test_it_says_who_did_what_to_which_memory(alice: Client, support: Instance) -> None:
    kept, gone = make_memory(support, "A secret text"), make_memory(support)
    delete_memory(scope_of(support), gone.id)
    page = text(alice.get(URL))
    assert "shell server" in page
    assert f'href="/memory/{kept.id}?instance=support-bot"' in page
    assert f'href="/memory/{gone.id}' not in page
    assert f"memoryId={gone.id}" in page
    assert "Deleted" in page
    assert "A secret text" not in page


def test_a_member_finds_it_in_the_navigation(alice: Client, support: Instance) -> None:
    assert 'href="/audit?instance=support-bot"' in text(alice.get("/memory?instance=support-bot"))


def test_empty(alice: Client) -> None:
    assert "Nothing has happened yet" in text(alice.get(URL))


def test_filters(alice: Client, support: Instance) -> None:
    first, second = make_memory(support), make_memory(support)
    delete_memory(scope_of(support), first.id)
    assert str(second.id) not in text(alice.get(f"{URL}&memoryId={first.id}")).split('id="entries"')[1]
    deleted = text(alice.get(f"{URL}&action=deleted")).split('id="entries"')[1]
    assert (str(first.id) in deleted, str(second.id) in deleted) == (True, False)
    assert "Nothing of this kind" in text(alice.get(f"{URL}&actor=user+nobody"))
    empty = "&actor=&action=&memoryId=&createdAfter=&createdBefore="
    assert str(first.id) in text(alice.get(URL + empty))
    assert "Nothing of this kind" in text(alice.get(f"{URL}&createdBefore=2020-01-01T00:00"))
    assert str(second.id) in text(alice.get(f"{URL}&createdAfter=2020-01-01T00:00&actor=shell+server"))


@pytest.mark.parametrize("query", ["memoryId=x", "createdAfter=yesterday", "cursor=x", f"actor={'x' * 201}"])
def test_a_wrong_filter_is_named(alice: Client, support: Instance, query: str) -> None:
    make_memory(support)
    page = text(alice.get(f"{URL}&{query}"))
    assert "This filter cannot be used" in page
    assert f"<b>{query.split('=')[0]}</b>" in page


def test_pages(alice: Client, support: Instance) -> None:
    for _ in range(60):
        make_memory(support)
    response = alice.get(URL)
    first = response.context["found"]
    assert "Older" in text(response)
    response = alice.get(f"{URL}&cursor={first.next_cursor}")
    rest = response.context["found"]
    assert (len(first.entries), len(rest.entries), rest.next_cursor) == (50, 10, None)
    assert not {entry.row.id for entry in first.entries} & {entry.row.id for entry in rest.entries}
    assert "Latest" in text(response)
    fragment = text(alice.get(URL, headers={"HX-Request": "true"}))
    assert "<html" not in fragment
    assert "Older" in fragment


def test_only_the_first_ids_of_many_are_shown(alice: Client, support: Instance) -> None:
    make_memories(support, 10)
    assert "and 7 more" in text(alice.get(URL))


def test_export_as_csv_has_a_line_per_memory(alice: Client, support: Instance, sales: Instance) -> None:
    memories = make_memories(support, 3)
    delete_memory(scope_of(support), memories[0].id)
    make_memory(sales)
    response = alice.get("/audit/export?instance=support-bot&format=csv")
    assert response.headers["Content-Disposition"].startswith('attachment; filename="support-bot-audit-')
    assert "no-store" in response.headers["Cache-Control"]
    rows = list(csv.DictReader(io.StringIO(text(response))))
    assert [row["action"] for row in rows] == ["deleted", "created", "created", "created"]
    assert {row["memoryId"] for row in rows} == {str(memory.id) for memory in memories}


def test_export_as_jsonl_with_filters(alice: Client, support: Instance) -> None:
    memories = make_memories(support, 3)
    delete_memory(scope_of(support), memories[0].id)
    response = alice.get("/audit/export?instance=support-bot&format=jsonl&action=created")
    (entry,) = [json.loads(line) for line in text(response).splitlines()]
    assert entry["memoryIds"] == [str(memory.id) for memory in memories]
    assert (entry["action"], entry["actor"], entry["memories"]) == ("created", "shell server", 3)


def test_export_in_several_parts(alice: Client, support: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.audit_log.EXPORTED_AT_ONCE", 2)
    for _ in range(5):
        make_memory(support)
    lines = text(alice.get("/audit/export?instance=support-bot&format=jsonl")).splitlines()
    assert len({json.loads(line)["id"] for line in lines}) == len(lines) == 5


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_a_spreadsheet_finds_no_formula(alice: Client, support: Instance, name: str) -> None:
    make_memory(support)
    AuditEntry.objects.filter(instance=support).update(actor=name)
    (row,) = csv.DictReader(io.StringIO(text(alice.get("/audit/export?instance=support-bot"))))
    assert row["actor"] == f"'{name}"


def test_a_wrong_filter_exports_nothing(alice: Client, support: Instance) -> None:
    response = alice.get("/audit/export?instance=support-bot&memoryId=x")
    assert response.status_code == 302
    assert response.headers["Location"] == "/audit?instance=support-bot&memoryId=x"


def test_a_superadmin_is_seen_reading_private_memories(superadmin: Client, alice: Client, support: Instance) -> None:
    memory = make_memory(support, "Bob's secret text", visibility="private", owner="bob")
    for page in (f"/memory/{memory.id}", "/memory", "/memory"):
        superadmin.get(f"{page}?instance=support-bot")
    superadmin.get("/memory?instance=support-bot&search=secret")
    entry = AuditEntry.objects.get(instance=support, action="read_private")
    assert (entry.actor, entry.memory_ids) == ("user root", [memory.id])
    page = text(alice.get(URL))
    assert "Read a private memory" in page
    assert "secret text" not in page


def test_search_alone_is_noted_too(superadmin: Client, support: Instance) -> None:
    memory = make_memory(support, "Bob's secret text", visibility="private", owner="bob")
    superadmin.get("/memory?instance=support-bot&search=secret")
    assert AuditEntry.objects.get(action="read_private").memory_ids == [memory.id]


def private(support: Instance, content: str = "Bob's secret text") -> Memory:
    return make_memory(support, content, visibility="private", owner="bob")


def noted() -> set[UUID]:
    return {id for entry in AuditEntry.objects.filter(action="read_private") for id in entry.memory_ids}


@pytest.mark.parametrize(
    "page", ["/recall?instance=support-bot&userId=bob&query=secret", "/recall?instance=support-bot&ask=secret"]
)
def test_recall_is_noted_too(superadmin: Client, support: Instance, page: str) -> None:
    memory = private(support)
    assert "secret text" in text(superadmin.get(page))
    assert noted() == {memory.id}


def test_so_is_a_recall_through_the_api(superadmin: Client, support: Instance) -> None:
    memory = private(support)
    asked = {"instanceId": "support-bot", "userId": "bob", "query": "secret"}
    assert "secret text" in text(superadmin.post("/api/v1/recall", asked, content_type="application/json"))
    assert noted() == {memory.id}


def test_so_is_the_memory_that_has_a_key_already(superadmin: Client, support: Instance) -> None:
    memory = make_memory(support, "Bob's secret text", key="plan", visibility="private", owner="bob")
    again = {"instanceId": "support-bot", "content": "Tea", "key": "plan", "owner": "bob", "dedupe": "reject"}
    answer = superadmin.post("/api/v1/memories", again, content_type="application/json")
    assert answer.json()["memory"]["content"] == "Bob's secret text"
    assert noted() == {memory.id}


@pytest.mark.parametrize(
    "page",
    [
        "/recall/{id}?instance=support-bot",
        "/api/v1/recalls/{id}?instanceId=support-bot",
        "/api/v1/recalls/{id}/why?instanceId=support-bot&memoryId={memory}",
    ],
)
def test_so_is_a_recall_of_the_past(superadmin: Client, support: Instance, page: str) -> None:
    memory = private(support)
    past = recall(scope_of(support), RecallRequest(query="secret", user_id="bob"))
    assert "secret text" in text(superadmin.get(page.format(id=past.id, memory=memory.id)))
    assert noted() == {memory.id}


def test_so_is_what_is_to_be_rejected(superadmin: Client, support: Instance) -> None:
    memory = make_waiting(support, "Bob's secret text", visibility="private", owner="bob")
    chosen = {"action": "reject", "ids": [str(memory.id)]}
    assert "secret text" in text(superadmin.post("/memory/review/bulk?instance=support-bot", chosen))
    assert noted() == {memory.id}


def test_so_is_what_a_golden_query_expects(superadmin: Client, support: Instance) -> None:
    memory = private(support)
    mark(scope_of(support), query="What is it?", user_id="bob", raw_memory_id=memory.id, expected=True)
    assert "secret text" in text(superadmin.get("/recall/golden?instance=support-bot"))
    assert noted() == {memory.id}


@pytest.mark.parametrize("page", ["/memory/review?instance=support-bot", "/api/v1/reviews?instanceId=support-bot"])
def test_so_is_what_waits_for_review(superadmin: Client, support: Instance, page: str) -> None:
    known = private(support)
    new = make_waiting(support, "A new secret text", known, visibility="private", owner="bob")
    assert "new secret text" in text(superadmin.get(page))
    assert noted() == {known.id, new.id}


@pytest.mark.parametrize(
    "page", ["/memory/duplicates?instance=support-bot", "/api/v1/duplicates?instanceId=support-bot"]
)
def test_so_are_duplicates(superadmin: Client, support: Instance, page: str) -> None:
    first, second = private(support), private(support, "The secret text of Bob")
    make_pair(first, second)
    assert "secret text" in text(superadmin.get(page))
    assert noted() == {first.id, second.id}
