"""POST /api/v1/import"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.files.uploadhandler import load_handler
from django.db import OperationalError, connection
from django.http.multipartparser import MultiPartParser
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.jobs import Job as QueuedJob

from instances.models import Instance
from memories import jobs
from memories.models import AuditEntry, Job, Memory
from memories.transfer import importing, uploads
from memories.transfer.report import Report, report_json
from memoryconsole import upload_limit
from tests.api.calling import Answer, Caller, signed_in
from tests.domain.looking import files
from tests.factories import make_key, make_memories, make_user

pytestmark = pytest.mark.usefixtures("storage")

URL = "/api/v1/import?instanceId=support-bot"


def send(api: Caller, raw: bytes, *, url: str = URL, type: str = "application/x-ndjson") -> Answer:
    return api.send("POST", url, raw=raw, type=type)


def test_json_lines(api: Caller, storage: Path) -> None:
    answer = send(api, b'{"content": "Alice likes tea"}\n{"content": ""}\n')
    assert answer.status == 200
    assert answer.json["import"] == {
        "dryRun": False,
        "format": "jsonl",
        "rows": 2,
        "created": 1,
        "existing": 0,
        "leftOut": 0,
        "invalid": 1,
        "redacted": 0,
        "droppedLinks": 0,
        "problems": [{"line": 2, "errors": {"content": ["This may not be empty."]}}],
    }
    job = answer.json["job"]
    assert (job["state"], job["attempts"]) == ("done", 1)
    assert job["createdAt"] <= job["startedAt"] <= job["finishedAt"]
    assert job["payload"]["started"].endswith("Z")
    assert "path" not in answer.json["job"]["payload"]
    assert Memory.objects.get().source == "import"
    assert files(storage) == []


@pytest.mark.parametrize(
    ("type", "raw", "format"),
    [
        ("text/csv", b"content,importance\nTea,7\n", "csv"),
        ("text/csv", b"importance;content\n7;Tea\n", "csv"),
        ("application/json", b'{"results": [{"memory": "Tea", "user_id": "dev"}]}', "mem0"),
        ("text/plain", b"- Tea\n", "chatgpt"),
        ("application/octet-stream", b'{"content": "Tea"}', "jsonl"),
        ("", b'{"content": "Tea"}', "jsonl"),
    ],
)
def test_formats(api: Caller, type: str, raw: bytes, format: str) -> None:
    for created, existing in ((1, 0), (0, 1)):
        report = send(api, raw, type=type).json["import"]
        assert (report["created"], report["existing"], report["invalid"]) == (created, existing, 0)
        assert report["format"] == format
    assert Memory.objects.get().content == "Tea"


def test_a_value_that_is_nested_too_deeply(api: Caller) -> None:
    deep = b"[" * 3_000 + b"]" * 3_000
    for raw in (
        b"content,evidence\nbad," + b"[" * 100_000 + b"\ngood,\n",
        b'{"content": "bad", "evidence": ' + deep + b'}\n{"content": "also good"}\n',
    ):
        report = send(api, raw).json["import"]
        assert (report["created"], report["invalid"]) == (1, 1)


def test_a_form(api: Caller, support: Instance) -> None:
    file = SimpleUploadedFile("../memories.jsonl", b'{"content": "Tea"}')
    answer = Answer(api.client.post(URL, {"file": file}, headers=api.headers))
    assert answer.json["import"]["created"] == 1
    assert answer.json["job"]["payload"]["name"] == "memories.jsonl"
    for sent in ({}, {"file": "text"}, {"other": "x"}):
        answer = Answer(api.client.post(URL, sent, headers=api.headers))
        assert answer.error == (400, "invalid")


def test_a_form_with_two_files(api: Caller) -> None:
    """Otherwise the last one would be imported, and the others dropped silently."""
    files = [SimpleUploadedFile(f"{name}.jsonl", f'{{"content": "{name}"}}'.encode()) for name in ("Tea", "Coffee")]
    answer = Answer(api.client.post(URL, {"file": files}, headers=api.headers))
    assert answer.errors == {"file": ["Send this once."]}
    assert not Memory.objects.exists()


def test_a_form_that_cannot_be_read(api: Caller, support: Instance) -> None:
    for caller in (api, signed_in(make_user("alice", support))):
        for type in ("multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=ä"):
            answer = send(caller, b"--x\r\n", type=type)
            assert answer.error == (400, "unreadable"), type
            assert "boundary" in answer.json["detail"]


def test_a_dry_run(api: Caller, storage: Path) -> None:
    report = send(api, b'{"content": "Tea"}', url=f"{URL}&dryRun=true").json["import"]
    assert (report["dryRun"], report["created"]) == (True, 1)
    assert not Memory.objects.exists()
    assert files(storage) == []


def test_a_large_file_is_for_the_worker(
    api: Caller, support: Instance, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "AT_ONCE", 10)
    raw = b'{"content": "A secret"}\n{"content": "", "key": "secret"}\n'
    answer = send(api, raw)
    assert answer.status == 202
    job = answer.json["job"]
    assert (job["kind"], job["state"], job["total"]) == ("import-memories", "queued", len(raw))
    assert (job["attempts"], job["startedAt"]) == (0, None)
    assert len(files(storage)) == 1
    assert files(storage)[0].stat().st_mode & 0o077 == 0
    queued = ProcrastinateJob.objects.get(task_name="import_memories")
    assert "secret" not in json.dumps(queued.args)
    jobs.import_memories(**queued.args)
    done = api.get(f"/api/v1/jobs/{job['id']}?instanceId=support-bot").json["job"]
    assert (done["state"], done["done"], done["payload"]["report"]["created"]) == ("done", len(raw), 1)
    assert done["payload"]["report"]["problems"][0]["line"] == 2
    assert "secret" not in json.dumps(Job.objects.get().payload)
    assert files(storage) == []
    assert Memory.objects.get().content == "A secret"


VERSION = {"version": 1, "content": "x", "role": "context", "importance": 5}
WRITTEN = {"writtenAt": "2026-05-12T15:00:00Z", "replacedAt": "2026-05-12T15:00:00Z"}


@pytest.mark.parametrize(
    ("row", "field", "reason"),
    [
        ({"category": "colour"}, "category", "“colour” is not a category."),
        ({"kind": "colour"}, "category", "“colour” is not a category."),
        ({"role": "helper"}, "role", "“helper” is not a role."),
        ({"visibility": "public"}, "visibility", "“public” is not known. Choose one of: 'private', 'instance',"),
        ({"status": "gone"}, "status", "“gone” is not known. Choose one of: 'active' or 'superseded'."),
        ({"status": "Bob is of the opinion that they will marry"}, "status", "“Bob is of the opinion that they…” is"),
        ({"category": "Alice told us that she is going to marry"}, "category", "“alice told us that she is going…” is"),
        ({"category": "a” password: hunter22 b"}, "category", "“a” password: [redacted"),
        ({"versions": [{**VERSION, **WRITTEN, "category": "colour"}]}, "versions.0.category", "“colour” is not a"),
    ],
)
def test_the_report_shows_the_word_that_is_wrong(api: Caller, row: dict[str, Any], field: str, reason: str) -> None:
    answer = send(api, json.dumps({"content": "x"} | row).encode())
    (problem,) = answer.json["import"]["problems"]
    assert problem["errors"][field][0].startswith(reason)
    assert "marry" not in str(problem)
    assert "hunter22" not in str(problem)


def test_the_report_shows_no_word_that_cannot_be_stored(api: Caller) -> None:
    answer = send(api, json.dumps({"content": "x", "status": "\x00"}).encode())
    (problem,) = answer.json["import"]["problems"]
    assert problem["errors"] == {"status": ["Choose one of: 'active' or 'superseded'."]}


def test_the_report_shows_no_other_word() -> None:
    report = Report()
    report.add_problem(1, {"content": ["“A secret” of “Alice”” Smith” is too long."]})
    assert report_json(report)["problems"][0]["errors"] == {"content": ["“…” is too long."]}


def test_the_report_shows_no_text_that_is_the_name_of_a_field(api: Caller) -> None:
    row = {"content": "x", "password: hunter2000": 1, "Bob is of the opinion that they will marry": 1}
    answer = send(api, json.dumps(row).encode())
    (problem,) = answer.json["import"]["problems"]
    assert list(problem["errors"]) == ["password: [redacted password]", "Bob is of the opinion that they…"]
    assert "hunter2000" not in str(Job.objects.values())


def test_the_worker_acts_for_whoever_asked(support: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "AT_ONCE", 1)
    send(signed_in(make_user("alice", support)), b'{"content": "Tea"}')
    jobs.import_memories(**ProcrastinateJob.objects.get(task_name="import_memories").args)
    assert AuditEntry.objects.get(action="imported").actor == "user alice"


def test_an_instance_that_is_gone_leaves_no_file(
    api: Caller, support: Instance, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "AT_ONCE", 1)
    send(api, b'{"content": "Tea"}')
    Instance.objects.filter(pk=support.pk).delete()
    jobs.import_memories(**ProcrastinateJob.objects.get(task_name="import_memories").args)
    assert files(storage) == []


def test_beginning_again_goes_on(api: Caller, support: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "AT_ONCE", 1)
    monkeypatch.setattr(importing, "BATCH", 2)
    send(api, b"".join(b'{"content": "%d"}\n' % n for n in range(6)))
    queued = ProcrastinateJob.objects.get(task_name="import_memories")
    store, calls = importing._store, []

    def crash(*args: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("power failure")
        return store(*args, **options)

    monkeypatch.setattr(importing, "_store", crash)
    with pytest.raises(RuntimeError):
        jobs.import_memories(**queued.args)
    job = Job.objects.get()
    assert (job.state, job.attempts, Memory.objects.count()) == ("failed", 1, 4)
    jobs.import_memories(**queued.args)
    job = Job.objects.get()
    assert (job.state, job.attempts, Memory.objects.count()) == ("done", 2, 6)


def test_going_on_reports_what_it_stored_before_as_its_own(
    api: Caller, support: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "AT_ONCE", 1)
    monkeypatch.setattr(importing, "BATCH", 2)
    rows = [{"content": "a"}, {"content": ""}, {"content": "a"}, {"content": "b"}, {"content": "c"}, {"role": "?"}]
    id = send(api, "\n".join(json.dumps(row) for row in rows).encode()).json["job"]["id"]
    queued = ProcrastinateJob.objects.get(task_name="import_memories")
    with cut_off_before_batch(3), pytest.raises(OperationalError):
        jobs.import_memories(**queued.args)
    assert (Job.objects.get().state, Memory.objects.count()) == ("running", 2)
    jobs.import_memories(**queued.args)
    report = api.get(f"/api/v1/jobs/{id}?instanceId=support-bot").json["job"]["payload"]["report"]
    assert (report["rows"], report["created"], report["existing"], report["invalid"]) == (6, 3, 1, 2)
    assert [problem["line"] for problem in report["problems"]] == [2, 6]
    assert sorted(Memory.objects.values_list("content", flat=True)) == ["a", "b", "c"]


def test_an_import_waits_for_the_database_as_long_as_that_takes() -> None:
    task = app.tasks["import_memories"]
    waited = QueuedJob(id=1, queue="default", lock=None, queueing_lock=None, task_name="import_memories", attempts=9)
    assert task.get_retry_exception(OperationalError(), waited)
    assert not task.get_retry_exception(ValueError(), waited)


@contextmanager
def cut_off_before_batch(number: int) -> Iterator[None]:
    """The database becomes unavailable when this batch is about to be stored."""
    turns = 0

    def lose(execute: Any, sql: str, *rest: Any) -> Any:
        nonlocal turns
        if "pg_advisory_xact_lock" in sql:
            turns += 1
            if turns == number:
                raise OperationalError("the connection is lost")
        return execute(sql, *rest)

    with connection.execute_wrapper(lose):
        yield


def test_too_large(api: Caller, storage: Path, settings: Any) -> None:
    settings.IMPORT_MAX_BYTES = 100
    answer = send(api, b'{"content": "x"}\n' * 100)
    assert answer.error == (413, "too_large")
    assert not Job.objects.exists()
    assert files(storage) == []


def test_a_form_that_is_too_large_is_not_even_read(
    api: Caller, storage: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_limit, "BESIDE_THE_FILE", 0)
    settings.IMPORT_MAX_BYTES = 100
    file = SimpleUploadedFile("memories.jsonl", b'{"content": "x"}' * 100)
    answer = Answer(api.client.post(URL, {"file": file}, headers=api.headers))
    assert answer.error == (413, "too_large")
    assert answer.json["detail"] == "A file may have at most 100 bytes."
    assert files(storage) == []


class Watched(BytesIO):
    """What a browser sends, and which files are in a directory while it is read."""

    def __init__(self, raw: bytes, directory: Path) -> None:
        super().__init__(raw)
        self.directory = directory
        self.seen: set[Path] = set()

    def read(self, size: int | None = -1) -> bytes:
        self.seen |= set(self.directory.iterdir())
        return super().read(size)


def test_a_killed_server_leaves_nothing_of_a_large_form(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    raw = b'{"content": "Alice likes tea"}\n' * 100_000
    form = encode_multipart(BOUNDARY, {"file": SimpleUploadedFile("tea.jsonl", raw)})
    sent = Watched(form, tmp_path)
    handlers = [load_handler(name, None) for name in settings.FILE_UPLOAD_HANDLERS]
    meta = {"CONTENT_TYPE": MULTIPART_CONTENT, "CONTENT_LENGTH": str(len(form))}
    file = MultiPartParser(meta, sent, handlers).parse()[1]["file"]
    assert (file.name, file.size, file.read() == raw) == ("tea.jsonl", len(raw), True)
    assert sent.seen | set(tmp_path.iterdir()) == set()


def test_a_large_form(api: Caller, storage: Path) -> None:
    file = SimpleUploadedFile("tea.jsonl", b'{"content": "Alice likes tea"}\n' * 100_000)
    answer = Answer(api.client.post(URL, {"file": file}, headers=api.headers))
    assert (answer.status, answer.json["job"]["total"]) == (202, file.size)
    assert [path.stat().st_size for path in files(storage)] == [file.size]


def test_bad_input(api: Caller) -> None:
    assert list(send(api, b"x", url=f"{URL}&format=xml").errors) == ["format"]
    assert list(send(api, b"x", url=f"{URL}&dryRun=perhaps").errors) == ["dryRun"]
    for url in (URL, f"{URL}&format=csv"):
        (reason,) = send(api, b"a,b\n1,2\n", url=url).errors["file"]
        assert reason.startswith("The first line of a CSV file names the columns, and one of them is content. Known ")
    assert send(api, b"content,zzz\na,b\n").json["detail"].startswith("file: Unknown columns: zzz. ")
    assert Job.objects.latest("id").error.startswith("Unknown columns: zzz. ")
    assert send(api, b"content,tags,Tags\na,b,c\n").errors == {"file": ["These columns are there twice: tags."]}
    assert not Memory.objects.exists()
    assert list(send(api, b"Notes\nTea\n", url=f"{URL}&name=notes.csv").errors) == ["file"]


def test_who_may(support: Instance, sales: Instance, storage: Path) -> None:
    assert send(Caller(make_key(support, read_only=True)), b'{"content": "x"}').error == (403, "read_only")
    assert send(Caller(make_key(sales)), b'{"content": "x"}').error == (404, "not_found")
    assert send(signed_in(make_user("alice", support)), b'{"content": "x"}').status == 200
    assert files(storage) == []


def test_an_export_is_an_import(api: Caller, support: Instance, sales: Instance) -> None:
    make_memories(support, 3)
    body = api.get("/api/v1/export?instanceId=support-bot").body
    answer = send(Caller(make_key(sales)), body, url="/api/v1/import?instanceId=sales-bot")
    assert answer.json["import"]["created"] == 3
