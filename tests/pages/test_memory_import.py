"""/memory/import: a file, what it would bring, and then it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from procrastinate.contrib.django.models import ProcrastinateJob

from instances.models import Instance
from memories import jobs
from memories.models import Job, Memory
from memories.transfer import uploads
from memoryconsole.errors import NotFound
from tests.domain.looking import files, while_writing
from tests.factories import make_memory, scope_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("storage")]
URL = "/memory/import?instance=support-bot"


def upload(client: Client, raw: bytes, name: str = "memories.jsonl", **fields: str) -> Any:
    return client.post(URL, {"file": SimpleUploadedFile(name, raw), **fields}, follow=True)


def job() -> Job:
    return Job.objects.get()


def html(response: Any) -> str:
    text: str = response.content.decode()
    return text


def act(client: Client, what: str) -> Any:
    return client.post(f"/memory/import/{job().id}/{what}?instance=support-bot", follow=True)


def test_check_then_confirm(alice: Client, support: Instance, storage: Path) -> None:
    make_memory(support, "Known")
    page = html(upload(alice, b'{"content": "New <b>"}\n{"content": "Known"}\n{"content": ""}\n'))
    assert "1 memory would be created" in page
    assert "memories.jsonl" in page
    assert "<dt>Read as</dt><dd>JSON lines</dd>" in page
    assert "<b>content</b>: This may not be empty." in page
    assert "Import 1 memory" in page
    assert Memory.objects.count() == 1
    assert len(files(storage)) == 1
    page = html(act(alice, "confirm"))
    assert "1 memory was created" in page
    assert sorted(Memory.objects.values_list("content", flat=True)) == ["Known", "New <b>"]
    assert files(storage) == []
    assert "This import is going on, is done" in html(act(alice, "confirm"))
    assert Memory.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_who_confirms_while_somebody_discards_finds_no_import(alice: Client, support: Instance, storage: Path) -> None:
    upload(alice, b'{"content": "New"}\n')
    scope, id = scope_of(support), job().id
    with pytest.raises(NotFound, match="no such import"):
        while_writing(lambda: uploads.discard(scope, id), uploads.confirm, scope, id)
    assert Memory.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_who_discards_while_somebody_confirms_takes_nothing_away(
    alice: Client, support: Instance, storage: Path
) -> None:
    upload(alice, b'{"content": "New"}\n')
    scope, confirmed = scope_of(support), Job.objects.filter(id=job().id)
    while_writing(lambda: confirmed.update(state=Job.State.QUEUED), uploads.discard, scope, job().id)
    assert confirmed.exists()
    assert len(files(storage)) == 1


def test_discard(alice: Client, storage: Path) -> None:
    upload(alice, b"- Likes tea\n", "list.txt")
    assert "Nothing was imported." in html(act(alice, "discard"))
    assert (files(storage), Job.objects.count(), Memory.objects.count()) == ([], 0, 0)


def test_a_large_file(alice: Client, support: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "AT_ONCE", 1)
    response = upload(alice, b'{"content": "New"}\n')
    assert "Waiting for the worker." in html(response)
    assert 'hx-trigger="every 1s"' in html(response)
    jobs.import_memories(**ProcrastinateJob.objects.latest("id").args)
    url = f"/memory/import/{job().id}?instance=support-bot"
    fragment = html(alice.get(url, headers={"HX-Request": "true"}))
    assert "1 memory would be created" in fragment
    assert "<html" not in fragment
    assert "every 1s" not in fragment
    assert "Waiting for the worker." in html(act(alice, "confirm"))
    jobs.import_memories(**ProcrastinateJob.objects.latest("id").args)
    assert "1 memory was created" in html(alice.get(url))
    assert job().attempts == 1
    assert Memory.objects.get().content == "New"


def test_nothing_to_import(alice: Client) -> None:
    assert "Choose a file first." in html(alice.post(URL, {}))
    assert "Choose one of: jsonl" in html(upload(alice, b"x", format="xml"))
    page = html(upload(alice, b"a,b\n", format="csv"))
    assert "names the columns" in page
    assert "Choose another file" in page


def test_many_problems_are_counted(alice: Client) -> None:
    page = html(upload(alice, b"{\n" * 150, format="jsonl"))
    assert "These are the first 100 of 150." in page


def test_forgotten_files_go(alice: Client, storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upload(alice, b'{"content": "Tea"}')
    jobs.remove_forgotten_uploads(0)
    assert len(files(storage)) == 1
    monkeypatch.setattr(uploads, "KEPT", timedelta(0))
    jobs.remove_forgotten_uploads(0)
    assert files(storage) == []
    assert "The file is gone" in html(act(alice, "confirm"))


def test_a_file_that_waits_for_the_worker_stays(alice: Client, storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "AT_ONCE", 0)
    monkeypatch.setattr(uploads, "KEPT", timedelta(0))
    upload(alice, b'{"content": "Tea"}')
    jobs.remove_forgotten_uploads(0)
    assert len(files(storage)) == 1
    jobs.import_memories(**ProcrastinateJob.objects.latest("id").args)
    assert job().state == "done"


def test_strangers(alice: Client, mallory: Client, support: Instance, sales: Instance) -> None:
    upload(alice, b'{"content": "New"}')
    for slug in ("support-bot", "sales-bot"):
        url = f"/memory/import/{job().id}"
        assert mallory.get(f"{url}?instance={slug}").status_code == 404
        assert mallory.post(f"{url}/confirm?instance={slug}").status_code == 404
        assert mallory.post(f"{url}/discard?instance={slug}").status_code == 404
    assert not Memory.objects.exists()
