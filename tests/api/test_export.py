"""GET /api/v1/export"""

import csv
import gc
import io
import json
from typing import Any

import pytest

from instances.models import Instance
from memories.models import AuditEntry
from memoryconsole.downloading import MOST
from tests.api.calling import Answer, Caller, signed_in
from tests.factories import make_key, make_memories, make_memory, make_user

URL = "/api/v1/export?instanceId=support-bot"


def rows(answer: Answer) -> list[dict[str, Any]]:
    assert answer.status == 200
    return [json.loads(line) for line in answer.body.splitlines()]


def test_json_lines(api: Caller, support: Instance, sales: Instance) -> None:
    make_memory(support, "Alice likes tea", tags=["a"])
    make_memory(support, "Bob likes coffee")
    make_memory(sales, "Not yours")
    answer = api.get(URL)
    assert [row["content"] for row in rows(answer)] == ["Alice likes tea", "Bob likes coffee"]
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="support-bot-20')
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer.headers["Content-Security-Policy"]


def test_slow_downloads_leave_room_for_other_requests(api: Caller, support: Instance) -> None:
    make_memory(support, "Alice likes tea")
    slow = [api.client.get(URL, headers=api.headers) for _ in range(MOST)]
    assert api.get(URL).error == (503, "try_again")
    assert AuditEntry.objects.filter(action="exported").count() == MOST, "what was refused was not exported"
    assert b"tea" in b"".join(slow.pop().streaming_content)
    assert len(rows(api.get(URL))) == 1
    assert len(rows(api.get(URL))) == 1, "one that was read makes room"
    next(slow[0].streaming_content)
    del slow
    gc.collect()
    again = [api.client.get(URL, headers=api.headers) for _ in range(MOST)]
    assert [len(rows(Answer(response))) for response in again] == [1] * MOST, "nobody reads the others any more"


def test_csv_is_no_formula(api: Caller, support: Instance) -> None:
    make_memory(support, "=HYPERLINK(1)", owner="+1", tags=["x", "y"])
    answer = api.get(f"{URL}&format=csv")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    (row,) = csv.DictReader(io.StringIO(answer.body.decode(), newline=""))
    assert (row["content"], row["owner"], row["tags"]) == ("'=HYPERLINK(1)", "'+1", '["x", "y"]')


def test_the_filters_of_the_list(api: Caller, support: Instance) -> None:
    make_memory(support, "Tea", category="preference", tags=["a", "b"])
    make_memory(support, "Coffee", tags=["a"])
    assert [row["content"] for row in rows(api.get(f"{URL}&tag=a&tag=b"))] == ["Tea"]
    assert [row["content"] for row in rows(api.get(f"{URL}&category=general"))] == ["Coffee"]


def test_over_pages(api: Caller, support: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.transfer.exporting.PAGE", 4)
    make_memories(support, 10)
    assert len({row["id"] for row in rows(api.get(URL))}) == 10


def test_private_memories_of_others(support: Instance) -> None:
    make_memory(support, "Bob's", visibility="private", owner="bob")
    assert rows(signed_in(make_user("alice", support)).get(URL)) == []
    assert len(rows(signed_in(make_user("bob", support)).get(URL))) == 1
    assert len(rows(Caller(make_key(support, read_only=True)).get(URL))) == 1


@pytest.mark.parametrize(
    ("extra", "field"), [("&format=xml", "format"), ("&vectors=maybe", "vectors"), ("&limit=5", "limit")]
)
def test_bad_input(api: Caller, extra: str, field: str) -> None:
    assert list(api.get(URL + extra).errors) == [field]
