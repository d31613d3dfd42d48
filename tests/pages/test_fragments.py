"""Pages of which HTMX gets a part: the browser keeps the two apart, or going back would show a part alone."""

import io

import pytest
from django.test import Client

from accounts.models import ApiKey
from instances.models import Instance
from memories.transfer.uploads import keep_upload
from tests.factories import make_key, make_memory, make_pair, make_procedure, make_waiting, scope_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def ids(support: Instance) -> dict[str, object]:
    make_key(support)
    memory, other = make_memory(support), make_memory(support)
    upload = keep_upload(scope_of(support), io.BytesIO(b"{}"), name="a.jsonl", format=None, dry_run=True)
    return {
        "memory": memory.id,
        "waiting": make_waiting(support).id,
        "pair": make_pair(memory, other).id,
        "procedure": make_procedure(support).id,
        "key": ApiKey.objects.get().id,
        "upload": upload.id,
    }


@pytest.mark.parametrize(
    "page",
    [
        "/memory",
        "/memory/{memory}/delete",
        "/memory/{waiting}/review?action=edit",
        "/memory/{memory}/history",
        "/memory/review",
        "/memory/duplicates",
        "/memory/duplicates/{pair}",
        "/memory/import/{upload}",
        "/memory/jobs/{upload}",
        "/recall",
        "/recall/log",
        "/conversations",
        "/procedures",
        "/procedures/new",
        "/procedures/{procedure}",
        "/procedures/{procedure}/delete",
        "/activity",
        "/audit",
        "/instances/new",
        "/instances/remove-demo",
        "/keys/{key}/revoke",
    ],
)
def test_the_part_and_the_page_are_kept_apart(superadmin: Client, ids: dict[str, object], page: str) -> None:
    url = page.format(**ids) + ("&" if "?" in page else "?") + "instance=support-bot"
    whole, part = superadmin.get(url), superadmin.get(url, headers={"HX-Request": "true"})
    assert b"<html" in whole.content
    assert b"<html" not in part.content
    assert "HX-Request" in whole["Vary"]
    assert "HX-Request" in part["Vary"]
