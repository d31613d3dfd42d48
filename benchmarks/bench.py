"""What the benchmarks share: a database of their own, medians, a table, and a result file that says where it ran."""

import atexit
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def fresh_console() -> None:
    """Django on an empty embedded PostgreSQL that is thrown away at the end; fsync stays on."""
    data_dir = Path(tempfile.mkdtemp(prefix="mc-bench-"))
    os.environ |= {"DATA_DIR": str(data_dir), "DATABASE_URL": "", "IGNORE_DOTENV": "yes"}
    os.environ["DJANGO_SETTINGS_MODULE"] = "memoryconsole.settings"
    sys.path.insert(0, str(ROOT))
    atexit.register(_throw_away, data_dir)
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def _throw_away(data_dir: Path) -> None:
    from django.db import connection

    from memoryconsole import embedded

    connection.close_pool()
    cluster = (data_dir / "postgres").resolve()
    embedded.server().stop("immediate")
    shutil.rmtree(data_dir, ignore_errors=True)
    shutil.rmtree(cluster, ignore_errors=True)


def median_ms(work: Callable[[], object], times: int) -> tuple[float, float]:
    """Median and 95th percentile in milliseconds, after one unmeasured run."""
    work()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append((time.perf_counter() - start) * 1000)
    return statistics.median(taken), sorted(taken)[max(0, int(len(taken) * 0.95) - 1)]


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [list(head), *([_shown(cell) for cell in row] for row in rows)]
    widths = [max(len(row[n]) for row in cells) for n in range(len(head))]
    for row in cells:
        others = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        print(row[0].ljust(widths[0]), *others, sep="  ")


def _shown(cell: object) -> str:
    return f"{cell:,.2f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else str(cell)


def write_result(name: str, rows: Sequence[dict[str, Any]], **about: Any) -> Path:
    """`results/<name>-<date>.json`: the figures and the machine they were seen on."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version'), extversion FROM pg_extension WHERE extname = 'vector'"
        )
        postgres, pgvector = cursor.fetchone()
    now = datetime.now(UTC)
    result = {
        "benchmark": name,
        "at": now.isoformat(timespec="seconds"),
        "machine": {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "postgresql": postgres,
            "pgvector": pgvector,
        },
        **about,
        "rows": list(rows),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}-{now:%Y-%m-%d}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\nWritten to {path.relative_to(ROOT)}")
    return path


def _cpu() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
