"""Memories with very many earlier texts are exported in parts, and come back whole."""

import json

import pytest

from instances.models import Instance
from memories.filters import Filters
from memories.models import Memory, MemoryVersion
from memories.transfer import exporting
from memories.transfer.exporting import export
from tests.domain.transferring import counts, exported, import_text
from tests.factories import make_instance, make_memory, scope_of

pytestmark = pytest.mark.django_db


def test_a_memory_that_was_changed_thousands_of_times_comes_back(bot: Instance) -> None:
    """As that of an agent that saves its notes under the same key every minute."""
    memory = make_memory(bot, "x" * 1_000, key="notes")
    add_versions(memory, 10_100)
    text = exported(bot)
    assert len(text) > 10 * 1024 * 1024
    other = make_instance()
    assert counts(import_text(other, text)) == {"rows": 1, "created": 1}
    assert MemoryVersion.objects.filter(instance=other).count() == 10_100


@pytest.mark.parametrize("page", [1, 2, 3, 100])
def test_an_export_holds_few_versions_at_once(bot: Instance, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    monkeypatch.setattr(exporting, "PAGE", page)
    numbers = [0, 2, 5, 0, 0, 1, 3]
    for n in numbers:
        add_versions(make_memory(bot), n)
    parts = list(export(scope_of(bot), Filters()))
    assert max(part.count('"replacedAt"') for part in parts) <= page
    rows = [json.loads(line) for line in "".join(parts).splitlines()]
    earlier = [[version["version"] for version in row.get("versions", [])] for row in rows]
    assert earlier == [[*range(1, n + 1)] for n in numbers]


def add_versions(memory: Memory, number: int) -> None:
    fields = {"content": memory.content, "category": "general", "role": "context", "importance": 5, "actor": "key bot"}
    moments = {"written_at": memory.created_at, "replaced_at": memory.created_at}
    MemoryVersion.objects.bulk_create(
        (
            MemoryVersion(instance_id=memory.instance_id, memory_id=memory.id, number=n, **fields, **moments)
            for n in range(1, number + 1)
        ),
        batch_size=1_000,
    )
