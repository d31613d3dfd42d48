"""What the benchmarks share: a temporary database, medians, tables, and result files that record the machine."""

import atexit
import http.client
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def fresh_console() -> None:
    """Set up Django on an empty embedded PostgreSQL, which is deleted at the end. fsync stays on."""
    data_dir = Path(tempfile.mkdtemp(prefix="mc-bench-"))
    os.environ |= {"DATA_DIR": str(data_dir), "DATABASE_URL": "", "IGNORE_DOTENV": "yes"}
    os.environ["DJANGO_SETTINGS_MODULE"] = "memoryconsole.settings"
    sys.path.insert(0, str(ROOT))
    atexit.register(_stop_and_delete, data_dir)
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def api_key() -> str:
    """A new key for all instances of the console in this process."""
    from accounts.access import SHELL
    from accounts.keys import Grants, create_key

    _, key = create_key(SHELL, name="bench", instances=[], grants=Grants(all_instances=True))
    return key


def analyze() -> None:
    """What autovacuum would do some time later."""
    from django.db import connection

    with connection.cursor() as cursor:
        for table in ("memory", "chunk", "embedding"):
            cursor.execute(f"VACUUM ANALYZE memories_{table}")


class Server:
    """The web server as `up` runs it, on a free port, with one persistent connection to it."""

    def __init__(self, key: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [sys.executable, str(ROOT / "manage.py"), "web", "--host", "127.0.0.1", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*command, "--parent", str(os.getpid())], env={**os.environ, "API_REQUESTS_PER_MINUTE": "10000000"}
        )
        atexit.register(self.stop)
        self.headers = {"Authorization": f"Bearer {key}", "Host": "localhost", "Content-Type": "application/json"}
        self._wait()

    def _wait(self) -> None:
        for _ in range(300):
            try:
                self.client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
                self.client.request("GET", "/healthz")
                self.client.getresponse().read()
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise RuntimeError("The web server does not answer.")

    def request(self, method: str, path: str, data: dict[str, Any] | None = None) -> bytes:
        """The body of the answer. It is not parsed, because that would be measured too."""
        body = json.dumps(data) if data is not None and method != "GET" else None
        query = f"?{urlencode(data, doseq=True)}" if data and method == "GET" else ""
        self.client.request(method, f"/api/v1{path}{query}", body=body, headers=self.headers)
        response = self.client.getresponse()
        answer = response.read()
        if response.status >= 300:
            raise RuntimeError(f"{response.status} {answer[:300]!r}")
        return answer

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)


def start_worker() -> None:
    """Start the worker as `up` does. It ends with this process."""
    command = [sys.executable, str(ROOT / "manage.py"), "worker", "--parent", str(os.getpid())]
    process = subprocess.Popen(command)
    atexit.register(process.wait, 20)
    atexit.register(process.terminate)


def delete_at_exit(directory: Path) -> None:
    atexit.register(shutil.rmtree, directory, ignore_errors=True)


def _stop_and_delete(data_dir: Path) -> None:
    from django.db import connection

    from memoryconsole import embedded

    connection.close_pool()
    cluster = (data_dir / "postgres").resolve()
    embedded.server().stop("immediate")
    shutil.rmtree(data_dir, ignore_errors=True)
    shutil.rmtree(cluster, ignore_errors=True)


def median_ms(call: Callable[[], object], times: int) -> tuple[float, float]:
    """Median and 95th percentile in milliseconds, after one unmeasured run."""
    call()
    measured = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        measured.append((time.perf_counter() - start) * 1000)
    return statistics.median(measured), percentile_95(measured)


def percentile_95(values: Sequence[float]) -> float:
    return sorted(values)[max(0, int(len(values) * 0.95) - 1)]


def load_average() -> float:
    return round(os.getloadavg()[0], 2)


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [list(head), *([_formatted(cell) for cell in row] for row in rows)]
    widths = [max(len(row[n]) for row in cells) for n in range(len(head))]
    for row in cells:
        others = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        print(row[0].ljust(widths[0]), *others, sep="  ")


def _formatted(cell: object) -> str:
    return f"{cell:,.2f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else str(cell)


def write_result(name: str, rows: Sequence[dict[str, Any]], **about: Any) -> Path:
    """Write `results/<name>-<date>.json`: the figures and the machine they are from."""
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
