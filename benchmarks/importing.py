"""What does it cost to bring a file in and to take one out? Rows per second, and the most memory it ever took.

    .venv/bin/python benchmarks/importing.py [--memories 1000000]

The import is measured against a raw COPY of the very rows it stored, with all their indexes; the export against reading
the same rows by COPY. Memory is this process's, before and at its peak. The load average is in the result: an import
needs two processors, one for itself and one for PostgreSQL.
"""

import argparse
import json
import resource
import tempfile
from time import perf_counter
from typing import IO, Any

from bench import fresh_console, load_average, print_table, write_result
from writes import columns, drafts, raw_copy


def rss_mb() -> float:
    """The most this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write_file(file: IO[bytes], number: int) -> None:
    """In parts, so that what is generated does not count as what importing needs."""
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


def copied_out(instance_id: Any) -> float:
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
        before = rss_mb()
        imported, report = timed_import(scope, file)
        assert report.created == number, report
        again, report = timed_import(scope, file)
        assert (report.created, report.existing) == (0, number), report
    after_import = rss_mb()
    exported, as_table = timed_export(scope, "jsonl"), timed_export(scope, "csv")
    after_export = rss_mb()
    read = copied_out(instance.id)
    copied = raw_copy(instance.id)
    rows = [
        {"what": "import, JSON lines", "per_second": number / imported, "ratio": copied / imported, "mb": after_import},
        {"what": "the same file again", "per_second": number / again, "ratio": copied / again, "mb": after_import},
        {"what": "raw COPY in", "per_second": number / copied, "ratio": 1.0, "mb": 0.0},
        {"what": "export, JSON lines", "per_second": number / exported, "ratio": read / exported, "mb": after_export},
        {"what": "export, CSV", "per_second": number / as_table, "ratio": read / as_table, "mb": after_export},
        {"what": "raw COPY out", "per_second": number / read, "ratio": 1.0, "mb": 0.0},
        {"what": "memory before", "per_second": 0.0, "ratio": 0.0, "mb": before},
    ]
    print_table(["", "rows/s", "× compared", "peak MB"], [list(row.values()) for row in rows])
    load.append(load_average())
    write_result("importing", rows, memories=number, load_before_and_after=load)


if __name__ == "__main__":
    main()
