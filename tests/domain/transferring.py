"""Helpers for tests of import and export."""

import io
import json
from typing import Any

from instances.models import Instance
from memories.filters import Filters
from memories.models import Memory
from memories.transfer.exporting import export
from memories.transfer.formats.detecting import Format
from memories.transfer.importing import import_file
from memories.transfer.report import Report
from tests.factories import scope_of

EVERYTHING = Filters(include_superseded=True)


def exported(instance: Instance, filters: Filters = EVERYTHING, format: Any = "jsonl", **options: Any) -> str:
    return "".join(export(scope_of(instance), filters, format, **options))


def import_text(instance: Instance, text: str | bytes, format: Format | None = None, **options: Any) -> Report:
    raw = text.encode() if isinstance(text, str) else text
    return import_file(scope_of(instance), io.BytesIO(raw), format, **options)


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def contents(instance: Instance) -> list[str]:
    return sorted(Memory.objects.filter(instance=instance).values_list("content", flat=True))


def counts(report: Report) -> dict[str, int]:
    counts = {name: getattr(report, name) for name in ("rows", "created", "existing", "left_out", "invalid")}
    return {name: n for name, n in counts.items() if n}


def exported_rows(instance: Instance) -> list[dict[str, Any]]:
    # Not `splitlines`, which also splits at characters that a text may contain.
    return [json.loads(line) for line in exported(instance).split("\n") if line]
