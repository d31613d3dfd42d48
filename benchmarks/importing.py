"""How fast are import and export, and how much memory do they take?

    .venv/bin/python benchmarks/importing.py [--memories 1000000]

The import is compared with a raw COPY of the rows it stored into the same tables, with all their indexes; the export
with reading the same rows by COPY. `peak MB` is the most memory this process has taken so far. The load average is in
the result, because an import needs two processors, one for itself and one for PostgreSQL.
"""

import argparse
import json
import resource
import tempfile
from time import perf_counter
from typing import IO, Any

from bench import fresh_console, load_average, print_table, write_result
from writes import columns, drafts, raw_copy


def peak_mb() -> float:
    """The most resident memory this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write_file(file: IO[bytes], number: int) -> None:
    """Written in parts, so that generating the rows does not raise the peak of memory."""
    for first in range(0, number, 10_000):
        part = drafts(min(10_000, number - first))
        for n, draft in enumerate(part, first):
            draft["content"] += f" {n}"
            file.write(json.dumps(draft).encode() + b"\n")


def timed_import(scope: Any, file: IO[bytes]) -> tuple[float, Any]:
    from memories.transfer.importing import import_file

    start = perf_counter()
    report = import_file(scope, file)
    return perf_counter() - start, report


def timed_export(scope: Any, format: str) -> float:
    from memories.filters import Filters
    from memories.transfer.exporting import export

    start = perf_counter()
    with tempfile.TemporaryFile("w", encoding="utf-8", newline="") as out:
        for part in export(scope, Filters(), format):
            out.write(part)
    return perf_counter() - start


def copy_out(instance_id: Any) -> float:
    from django.db import connection

    start = perf_counter()
    rows = f"SELECT {columns('memories_memory')} FROM memories_memory WHERE instance_id = '{instance_id}' ORDER BY id"
    statement = f"COPY ({rows}) TO STDOUT (FORMAT csv)"
    with connection.cursor() as cursor, tempfile.TemporaryFile() as out, cursor.copy(statement) as copy:
        for part in copy:
            out.write(bytes(part))
    return perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=200_000)
    number = parser.parse_args().memories
    load = [load_average()]
    fresh_console()
    from accounts.access import SHELL, open_instance
    from instances.store import InstanceDraft, create_instance

    instance = create_instance(SHELL, InstanceDraft(slug="transfer"))
    scope = open_instance(SHELL, instance.slug)
    with tempfile.TemporaryFile() as file:
        write_file(file, number)
        before = peak_mb()
        imported, report = timed_import(scope, file)
        assert report.created == number, report
        again, report = timed_import(scope, file)
        assert (report.created, report.existing) == (0, number), report
    after_import = peak_mb()
    exported, as_csv = timed_export(scope, "jsonl"), timed_export(scope, "csv")
    after_export = peak_mb()
    copied_out = copy_out(instance.id)
    copied_in = raw_copy(instance.id)

    def row(what: str, seconds: float, copy_seconds: float, mb: float = 0.0) -> dict[str, Any]:
        return {"what": what, "per_second": number / seconds, "ratio": copy_seconds / seconds, "mb": mb}

    rows = [
        row("import, JSON lines", imported, copied_in, after_import),
        row("the same file again", again, copied_in, after_import),
        row("raw COPY in", copied_in, copied_in),
        row("export, JSON lines", exported, copied_out, after_export),
        row("export, CSV", as_csv, copied_out, after_export),
        row("raw COPY out", copied_out, copied_out),
        {"what": "memory before", "per_second": 0.0, "ratio": 0.0, "mb": before},
    ]
    print_table(["", "rows/s", "× compared", "peak MB"], [list(row.values()) for row in rows])
    load.append(load_average())
    write_result("importing", rows, memories=number, load_before_and_after=load)


if __name__ == "__main__":
    main()
