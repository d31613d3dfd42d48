"""Run one peer in a process of its own, called by lines of JSON, so that all systems can take turns.

python benchmarks/peer/serve.py chromadb --material DIR --work DIR [--database URL]
"""

import argparse
import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from material import Material

PEERS = {
    "mem0": ("mem0_pgvector", "open_indexed"),
    "mem0 exact": ("mem0_pgvector", "open_exact"),
    "langchain-postgres": ("langchain_pgvector", "open_indexed"),
    "langchain-postgres exact": ("langchain_pgvector", "open_exact"),
    "chromadb": ("chroma_collections", "open_collections"),
    "chromadb server": ("chroma_collections", "open_served"),
    "lancedb": ("lance_table", "open_table"),
    "lancedb indexed": ("lance_table", "open_indexed"),
}


@dataclass(frozen=True)
class Place:
    """Where a peer stores its data, and what it is given."""

    work: Path
    database: str
    material: Material


class Peer(Protocol):
    packages: Sequence[str]
    modes: Sequence[str]

    def fill(self, tenants: Sequence[str]) -> None:
        """Store the rows of these tenants, in the fastest way there is."""

    def settle(self) -> None:
        """Do what its documentation says to do after many rows: indexes, statistics, compaction."""

    def add(self, numbers: Sequence[int]) -> None:
        """Store these rows by the call that a program would use."""

    def catch_up(self) -> None:
        """Do what is left to do before the new rows are in its indexes."""

    def search(self, tenant: str, mode: str, category: str, question: int, limit: int) -> list[int]:
        """The numbers of the rows found, best first; only of the category, if one is given."""


class Served:
    def __init__(self, peer: Peer, material: Material) -> None:
        self.peer, self.material = peer, material

    def about(self) -> dict[str, Any]:
        from importlib.metadata import version

        return {"modes": list(self.peer.modes), "versions": {name: version(name) for name in self.peer.packages}}

    def fill(self, tenants: list[str]) -> dict[str, Any]:
        return {"seconds": timed(lambda: self.peer.fill(tenants))}

    def settle(self) -> dict[str, Any]:
        return {"seconds": timed(self.peer.settle)}

    def add(self, first: int, last: int, batch: int, seconds: float) -> dict[str, Any]:
        """Add as many of the rows as there is time for."""
        start, added = perf_counter(), first
        while added < last and perf_counter() - start < seconds:
            numbers = range(added, min(added + batch, last))
            self.peer.add(numbers)
            added = numbers.stop
        saved = perf_counter() - start
        self.peer.catch_up()
        return {"added": added - first, "seconds": perf_counter() - start, "saved_seconds": saved}

    def search(self, tenant: str, mode: str, category: str, questions: list[int], limit: int) -> dict[str, Any]:
        milliseconds, found = [], []
        for question in questions:
            start = perf_counter()
            found.append(self.peer.search(tenant, mode, category, question, limit))
            milliseconds.append((perf_counter() - start) * 1000)
        return {"ms": milliseconds, "found": found}


def timed(call: Callable[[], None]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--material", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--database", default="")
    options = parser.parse_args()
    # Exit handlers, which end what the peer has started, then run on SIGTERM too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # Libraries print to stdout, so answers get a copy of it and stdout becomes stderr.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    module, function = PEERS[options.peer]
    served: Served | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if served is None:
                material = Material(options.material)
                place = Place(options.work, options.database, material)
                served = Served(getattr(importlib.import_module(module), function)(place), material)
            answer = getattr(served, request.pop("method"))(**request)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
