"""How does the console compare? mem0, langchain-postgres, Chroma and LanceDB on the same rows, vectors and questions.

    .venv/bin/python benchmarks/peers.py [--sizes 1000,10000,100000] [--set SET.jsonl …]

Peers live in a virtual environment of their own (`.venv-peers`), which the first run creates. They are called through
their Python API, each in its own process; the console is called over HTTP. Every store holds all tenants. A search is
within one tenant, among all its rows or those of one category, which every 20th row has. All systems take turns, so
that other load on the machine affects all alike, and those on PostgreSQL use the same server. Embedding is not
measured: peers are given vectors, and the console has seen every question once before.

`cpu_ms` is the processor time of all processes involved in a search: the peer, or web server and caller, and
PostgreSQL. `exact@20` is the share of the 20 nearest by exact cosine, among the rows searched, that the answer
contains. Adds go into the full store, one by one and in batches of 500: `per_second` counts until the rows are in the
indexes, `saved_per_second` until the call returns.

With `--set`, Recall@10 is measured on retrieval sets (in the format of `quality.py`), with vectors from
OPENAI_BASE_URL.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

from bench import ROOT, delete_at_exit, percentile_95, print_table
from cpu import used_ms
from peer_quality import RetrievalSet, quality
from peer_setting import LIMIT, Comparison, Setting
from peer_systems import OURS, System

VENV = ROOT / ".venv-peers"
REQUIREMENTS = ROOT / "benchmarks" / "requirements-peers.txt"
PEERS = [
    "mem0",
    "mem0 exact",
    "langchain-postgres",
    "langchain-postgres exact",
    "chromadb",
    "chromadb server",
    "lancedb",
]
# LanceDB's documentation asks for no vector index below.
WORTH_INDEXING = 100_000
ADDS, SINGLES, BATCH = 5_000, 100, 500
ADD_SECONDS, PASS_SECONDS, ROUNDS = 10.0, 5.0, 3


def speed(setting: Setting, sizes: Sequence[int], questions: int) -> dict[str, list[dict[str, Any]]]:
    material = setting.directory("material")
    command = [str(setting.python), str(ROOT / "benchmarks" / "peer" / "material.py"), "--out", str(material)]
    numbers = ["--sizes", ",".join(map(str, sizes)), "--adds", str(ADDS), "--queries", str(questions)]
    subprocess.run([*command, *numbers], check=True)
    names = PEERS + (["lancedb indexed"] if sum(sizes) >= WORTH_INDEXING else [])
    comparison = setting.compare(names, material)
    tenants = [f"tenant-{size}" for size in sizes]
    filled: list[dict[str, Any]] = []

    def fill(system: System) -> None:
        row = {"system": system.name, "fill_seconds": system.fill(tenants), "settle_seconds": system.settle()}
        print(f"Filled {system.name}: {row['fill_seconds']:.0f} s, settled: {row['settle_seconds']:.0f} s", flush=True)
        filled.append(row)

    comparison.each(fill)
    exact = json.loads((material / "exact.json").read_text())
    searches: list[dict[str, Any]] = []
    for size, tenant in zip(sizes, tenants, strict=True):
        for category, nearest in exact[tenant].items():
            for mode in ("hybrid", "vector"):
                print(f"Searching {size:,} memories, {mode}{category and f', category {category}'} …", flush=True)
                searches += search_all(comparison, Scope(size, tenant, mode, category, nearest), setting.postgres)
    print("Adding …", flush=True)
    adds = add_all(comparison, sum(sizes))
    setting.end(comparison)
    return {"rows": searches, "adds": adds, "filled": filled}


@dataclass(frozen=True)
class Scope:
    """What to search and how, and the rows that are nearest to each question there."""

    size: int
    tenant: str
    mode: str
    category: str
    exact: list[list[int]]

    def search(self, system: System, questions: Sequence[int]) -> dict[str, Any]:
        return system.search(self.tenant, self.mode, self.category, questions, LIMIT)


def search_all(comparison: Comparison, scope: Scope, postgres: int) -> list[dict[str, Any]]:
    questions: dict[str, list[int]] = {}
    used: dict[str, float] = defaultdict(float)
    answers: dict[str, list[tuple[int, float, list[int]]]] = {}

    def warm_up(system: System) -> None:
        if scope.mode not in system.modes:
            return
        milliseconds = median(scope.search(system, range(5))["ms"])
        number = min(len(scope.exact), max(10, int(PASS_SECONDS * 1000 / milliseconds)))
        scope.search(system, range(5, number))
        questions[system.name], answers[system.name] = list(range(number)), []

    def measure(number: int, system: System) -> None:
        part = questions.get(system.name, [])[number::ROUNDS]
        if part:
            before = used_ms(*system.processes, postgres)
            answer = scope.search(system, part)
            used[system.name] += used_ms(*system.processes, postgres) - before
            answers[system.name] += zip(part, answer["ms"], answer["found"], strict=True)

    comparison.each(warm_up)
    for number in range(ROUNDS):
        comparison.each(partial(measure, number))
    measured = [system.name for system in comparison.systems if system.name in answers]
    rows = [search_row(name, scope, answers[name], used[name]) for name in measured]
    return with_ratio(with_ratio(rows, "p50_ms"), "cpu_ms")


def search_row(name: str, scope: Scope, answers: Sequence[tuple[int, float, list[int]]], used: float) -> dict[str, Any]:
    milliseconds = [ms for _, ms, _ in answers]
    nearest = [(set(scope.exact[question]), found) for question, _, found in answers]
    recall = mean(len(exact.intersection(found)) / len(exact) for exact, found in nearest)
    about = {"memories": scope.size, "mode": scope.mode, "category": scope.category, "system": name}
    figures = {
        "p50_ms": median(milliseconds),
        "p95_ms": percentile_95(milliseconds),
        "cpu_ms": used / len(milliseconds),
    }
    return {**about, **figures, "exact@20": recall, "n": len(milliseconds)}


def with_ratio(rows: list[dict[str, Any]], figure: str) -> list[dict[str, Any]]:
    ours = next((row[figure] for row in rows if row["system"] == OURS), None)
    return [row | {f"ours/theirs {figure}": ours / row[figure] if ours and row[figure] else None} for row in rows]


def add_all(comparison: Comparison, stored: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []

    def add(system: System) -> None:
        for batch, first, last in ((1, stored, stored + SINGLES), (BATCH, stored + SINGLES, stored + ADDS)):
            result = system.add(first, last, batch, ADD_SECONDS)
            row = {"batch": batch, "system": system.name, "per_second": result["added"] / result["seconds"]}
            rows.append(row | {"saved_per_second": result["added"] / result["saved_seconds"]})

    comparison.each(add)
    return [row for batch in (1, BATCH) for row in with_ratio([r for r in rows if r["batch"] == batch], "per_second")]


def peers_python(venv: Path) -> Path:
    """The Python of the virtual environment with the peers, which is created if there is none."""
    python = venv / "bin" / "python"
    if not python.exists():
        print(f"Installing the peers into {venv} …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--require-hashes"]
        # As constraints too: see .ci/install.
        subprocess.run([*install, "-c", str(REQUIREMENTS), "-r", str(REQUIREMENTS)], check=True)
    return python


def show(rows: Sequence[dict[str, Any]]) -> None:
    print()
    print_table(list(rows[0]), [["" if cell is None else cell for cell in row.values()] for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000", help="memories of each tenant; `none` for sets alone")
    parser.add_argument("--set", dest="sets", action="append", type=Path, default=[])
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--patience", type=float, default=1800, help="seconds a peer may take to fill or index")
    parser.add_argument("--venv", type=Path, default=VENV)
    options = parser.parse_args()
    # Exit handlers, which delete the temporary data, then run on SIGTERM too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    python = peers_python(options.venv)
    work = Path(tempfile.mkdtemp(prefix="mc-peers-"))
    delete_at_exit(work)
    setting = Setting(work, python, options.patience)
    if options.sizes != "none":
        compare_speed(setting, [int(size) for size in options.sizes.split(",")], options.questions)
    if options.sets:
        compare_quality(setting, [RetrievalSet(path) for path in options.sets])


def compare_speed(setting: Setting, sizes: Sequence[int], questions: int) -> None:
    load_before = os.getloadavg()
    result = speed(setting, sizes, questions)
    show(result["rows"])
    show(result["adds"])
    setting.write("peers", result.pop("rows"), load_before, **result)


def compare_quality(setting: Setting, sets: Sequence[RetrievalSet]) -> None:
    load_before = os.getloadavg()
    rows = quality(setting, sets)
    show(rows)
    setting.write("peers-quality", rows, load_before)


if __name__ == "__main__":
    main()
