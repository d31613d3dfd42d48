"""Import: nothing is imported twice, and every problem has a line."""

import io
import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts.access import Actor, Scope
from instances.models import Instance
from memories import jobs
from memories.draft import MemoryChanges
from memories.models import AuditEntry, Memory, MemoryVersion
from memories.store import change, find_memory
from memories.transfer import importing, known
from memories.transfer.importing import import_file
from memories.transfer.report import Report
from memoryconsole.errors import NotAllowed
from memoryconsole.ids import uuid7
from tests.domain.transferring import contents, counts, exported, import_text, lines
from tests.factories import make_memory, scope_of

pytestmark = pytest.mark.django_db


# Rows that exist already


def test_by_key_and_by_content(bot: Instance) -> None:
    make_memory(bot, "Alice likes tea")
    make_memory(bot, "Ten seats", key="seats")
    rows = lines(
        {"content": "Alice likes tea"},
        {"content": "Ten seats", "key": "seats"},
        {"content": "Twelve seats", "key": "seats"},
        {"content": "Twelve seats", "key": "seats", "owner": "acme"},
        {"content": "New"},
        {"content": "New"},
    )
    for _ in range(2):
        report = import_text(bot, rows)
        assert report.problems == [
            {"line": 3, "errors": {"key": ["Another memory has this key, and says something else."]}}
        ]
    assert counts(report) == {"rows": 6, "existing": 5, "invalid": 1}
    assert contents(bot) == ["Alice likes tea", "New", "Ten seats", "Twelve seats"]


def test_over_batches(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "BATCH", 2)
    rows = lines(*({"content": f"Memory {n % 4}"} for n in range(9)))
    seen: list[int] = []
    report = import_text(bot, rows, progress=lambda report, position: seen.append(position))
    assert counts(report) == {"rows": 9, "created": 4, "existing": 5}
    assert seen[-1] == len(rows)
    assert len(seen) == 5


def test_what_is_private_to_others_is_no_secret_to_find_out(bot: Instance) -> None:
    make_memory(bot, "Bob's secret", visibility="private", owner="bob")
    alice = Scope(bot, Actor(kind="user", name="alice"))
    row = lines({"content": "Bob's secret", "owner": "bob"})
    assert counts(import_file(alice, io.BytesIO(row.encode()))) == {"rows": 1, "created": 1}


def test_whether_a_guess_is_what_a_private_memory_says_is_no_secret_to_find_out_by_its_key(bot: Instance) -> None:
    make_memory(bot, "Bob's secret", key="secret", visibility="private", owner="bob")
    alice = Scope(bot, Actor(kind="user", name="alice"))
    for guess in ("Bob's secret", "Bob has no secret"):
        row = lines({"content": guess, "key": "secret", "owner": "bob"})
        assert counts(import_file(alice, io.BytesIO(row.encode()))) == {"rows": 1, "invalid": 1}


def test_ids_that_are_not_ours_are_made_anew(bot: Instance) -> None:
    wrong = str(uuid7())
    rows = lines(
        {"content": "a", "id": "123e4567-e89b-42d3-a456-426614174000"},
        {"content": "b", "id": wrong, "createdAt": "2020-01-01T00:00:00Z"},
    )
    import_text(bot, rows)
    ids = {str(id) for id in Memory.objects.values_list("id", flat=True)}
    assert wrong not in ids
    assert all(id[14] == "7" for id in ids)
    listed = Memory.objects.filter(instance=bot).order_by("-id").values_list("content", flat=True)
    assert list(listed) == ["a", "b"], "what is older stands behind"


@pytest.mark.parametrize("created", [None, "1960-05-12T00:00:00Z"])
def test_a_memory_from_a_file_is_known_by_its_id_from_then_on(
    bot: Instance, other: Instance, created: str | None
) -> None:
    """Also if the worker began long after the file was uploaded, or if no id can tell when it was made."""
    import_text(bot, lines({"content": "Tea", "createdAt": created}), started=timezone.now() - timedelta(minutes=5))
    memory = Memory.objects.get()
    text = exported(bot)
    change(scope_of(bot), memory.id, MemoryChanges(content="Coffee"))
    assert counts(import_text(bot, text)) == {"rows": 1, "existing": 1}
    import_text(other, text)
    assert find_memory(scope_of(other), memory.id).content == "Tea"


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (known.KNOWN_IDS, "memories_memory_pkey"),
        (known.KNOWN_KEYS, "memory_active_key_once"),
        (known.KNOWN_TEXTS, "memory_same_content"),
    ],
)
def test_what_is_known_is_looked_up_even_in_an_instance_without_statistics(
    bot: Instance, other: Instance, statement: str, index: str
) -> None:
    import_text(bot, lines(*({"content": f"Memory {n}", "key": f"key {n}"} for n in range(300))))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories_memory")
    import_text(other, lines(*({"content": f"Memory {n}", "key": f"key {n}"} for n in range(300))))
    named = {"instance": other.id, "ids": [uuid7()], "keys": ["key 1"], "owners": [""], "hashes": [b"x"]}
    named |= {"reader": None, "started": timezone.now()}
    plan = "\n".join(line for (line,) in known.select("EXPLAIN " + statement, named))
    assert f"using {index} on" in plan
    assert re.search(r"Index Cond: .* <= wanted\.", plan)


def test_the_batches_of_a_file_of_long_rows_are_small(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "BATCH_BYTES", 5_000)
    seen: list[tuple[int, int]] = []
    rows = lines(*({"content": f"{n} " + "x" * 2_000} for n in range(10)))
    report = import_text(bot, rows, progress=lambda report, position: seen.append((report.created, position)))
    assert counts(report) == {"rows": 10, "created": 10}
    assert [created for created, _ in seen] == [3, 6, 9, 10]
    assert seen[-1][1] == len(rows)


def test_a_file_that_cannot_be_stored_is_not_read_to_its_end(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "BATCH", 2)
    file = io.BytesIO(lines(*({"content": f"Memory {n}"} for n in range(10_000))).encode())

    def stop(report: Report, position: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        import_file(scope_of(bot), file, progress=stop)
    assert file.tell() < len(file.getvalue()) // 2
    assert contents(bot) == [], "a batch is stored together with the report that counts it"


# Dry runs and problems


def test_a_dry_run_stores_nothing(bot: Instance) -> None:
    rows = lines({"content": "a"}, {"content": ""}, {"content": "b", "importance": 99})
    report = import_text(bot, rows, dry_run=True)
    assert counts(report) == {"rows": 3, "created": 1, "invalid": 2}
    assert not Memory.objects.exists()
    assert not AuditEntry.objects.filter(action="imported").exists()


EARLIER = {
    "version": 1,
    "content": "x",
    "category": "fact",
    "role": "context",
    "importance": 5,
    "writtenAt": "2026-01-01",
    "replacedAt": "2026-01-02",
}
# The database would refuse these, and with them the whole batch.
OF_ANOTHER_HASH = json.dumps({"content": "x", "vectors": {"model": "m", "byText": {"z" * 64: "A" * 4096}}})
WITH_A_LONG_KEY = json.dumps({"content": "x", "versions": [{**EARLIER, "key": f"{'x' * 180} password=123456"}]})


@pytest.mark.parametrize(
    ("row", "errors"),
    [
        ('{"content": ""}', {"content": ["This may not be empty."]}),
        ('{"contnet": "x"}', {"content": ["This field is required."], "contnet": ["Unknown field."]}),
        ('{"content": "x", "category": "colour"}', None),
        ('{"content": "x", "createdAt": "2999-01-01T00:00:00Z"}', {"createdAt": ["This is in the future."]}),
        ('{"content": "x", "versions": [{"version": 0}]}', None),
        ('{"content": "x", "vectors": {"model": "m", "byText": {"aa": "AAAA"}}}', None),
        (OF_ANOTHER_HASH, None),
        (WITH_A_LONG_KEY, None),
        ('{"content": "x", "visibility": "private"}', {"owner": ["A private memory needs an owner."]}),
        ("{", {"row": ["This is not JSON: Expecting property name enclosed in double quotes."]}),
        ("[1]", {"row": ["This is not an object."]}),
        ("7", {"row": ["This is not an object."]}),
        ("[" * 100_000, None),
    ],
)
def test_problems_by_line(bot: Instance, row: str, errors: dict[str, list[str]] | None) -> None:
    report = import_text(bot, f'{{"content": "good"}}\n\n{row}\n{{"content": "also good"}}\n', "jsonl")
    assert counts(report) == {"rows": 3, "created": 2, "invalid": 1}
    (problem,) = report.problems
    assert problem["line"] == 3
    assert errors is None or problem["errors"] == errors


def test_only_the_first_problems_are_kept(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.transfer.report.PROBLEMS_SHOWN", 3)
    report = import_text(bot, "{\n" * 10, "jsonl")
    assert (report.invalid, [problem["line"] for problem in report.problems]) == (10, [1, 2, 3])


def test_of_a_row_with_very_many_problems_only_the_first_are_kept(bot: Instance) -> None:
    (problem,) = import_text(bot, lines({"content": "Tea", "versions": [{"version": 1}] * 3_000})).problems
    assert len(problem["errors"]) == 10
    assert problem["errors"]["versions.0.content"] == ["This field is required."]


def test_credentials_are_replaced_and_expired_ones_left_out(bot: Instance) -> None:
    rows = lines(
        {"content": "password: hunter22", "versions": []},
        {"content": "Gone", "expiresAt": (datetime.now(UTC) - timedelta(days=1)).isoformat()},
    )
    report = import_text(bot, rows)
    assert (report.redacted, report.left_out) == (1, 1)
    assert "hunter22" not in str(contents(bot))


def test_credentials_are_replaced_in_earlier_versions(bot: Instance) -> None:
    secret = "password: hunter22"
    said = dict.fromkeys(("key", "content", "summary", "reason"), secret)
    version = {**EARLIER, **said, "tags": [secret], "evidence": {secret: secret}}
    import_text(bot, lines({"content": "It was changed", "versions": [version]}))
    (kept,) = MemoryVersion.objects.filter(instance=bot).values()
    assert "hunter22" not in str(kept)
    assert kept["tags"] == ["password: [redacted password]"]


def test_what_has_expired_here_and_is_not_purged_yet_is_not_there_already(bot: Instance) -> None:
    make_memory(bot, "Ann likes tea", key="drink")
    make_memory(bot, "Ann lives in Bern")
    Memory.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    rows = lines({"content": "Ann likes tea", "key": "drink"}, {"content": "Ann lives in Bern"})
    assert counts(import_text(bot, rows, dry_run=True)) == {"rows": 2, "created": 2}
    assert counts(import_text(bot, rows)) == {"rows": 2, "created": 2}
    jobs.purge_all_expired(timestamp=0)
    assert contents(bot) == ["Ann likes tea", "Ann lives in Bern"]


def test_an_empty_file(bot: Instance) -> None:
    for empty in ("", "\n\n", "[]", "content\n"):
        assert counts(import_text(bot, empty)) == {}


def test_who_may_only_read(bot: Instance) -> None:
    with pytest.raises(NotAllowed):
        import_file(Scope(bot, Actor(kind="key", name="reader", read_only=True)), io.BytesIO(b""))
