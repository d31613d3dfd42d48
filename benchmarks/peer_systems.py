"""The systems that `peers.py` compares, with one interface: peers in processes of their own, the console over HTTP."""

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from bench import ROOT, analyze
from console import Console

OURS = "memory console"
BULK = 1000


class Failed(Exception):
    """The system cannot be measured. The message says why."""


class System(Protocol):
    name: str
    modes: Sequence[str]
    versions: dict[str, str]
    processes: Sequence[int]

    def fill(self, tenants: Sequence[str]) -> float: ...
    def settle(self) -> float: ...
    def add(self, first: int, last: int, batch: int, seconds: float) -> dict[str, Any]: ...
    def search(self, tenant: str, mode: str, category: str, questions: Sequence[int], limit: int) -> dict[str, Any]: ...
    def close(self) -> None: ...


class Peer:
    """A peer in a process of its own (`peer/serve.py`), called by lines of JSON. A call may take `patience` seconds."""

    def __init__(self, name: str, python: Path, material: Path, work: Path, database: str, patience: float) -> None:
        self.name, self.patience = name, patience
        work.mkdir(parents=True, exist_ok=True)
        self.log = work / "log"
        command = [str(python), str(ROOT / "benchmarks" / "peer" / "serve.py"), name]
        places = ["--material", str(material), "--work", str(work), "--database", database]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, *places], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.processes: Sequence[int] = [self.process.pid]
        about = self._call("about")
        self.modes: Sequence[str] = about["modes"]
        self.versions: dict[str, str] = about["versions"]

    def fill(self, tenants: Sequence[str]) -> float:
        return float(self._call("fill", tenants=tenants)["seconds"])

    def settle(self) -> float:
        return float(self._call("settle")["seconds"])

    def add(self, first: int, last: int, batch: int, seconds: float) -> dict[str, Any]:
        return self._call("add", first=first, last=last, batch=batch, seconds=seconds)

    def search(self, tenant: str, mode: str, category: str, questions: Sequence[int], limit: int) -> dict[str, Any]:
        scope = {"tenant": tenant, "mode": mode, "category": category}
        return self._call("search", **scope, questions=list(questions), limit=limit)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"method": method, **arguments}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self._last_log_line()) from None
        if not select.select([self.process.stdout], [], [], self.patience)[0]:
            self.close()
            raise Failed(f"{method} took more than {self.patience:.0f} s")
        line = self.process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": self._last_log_line()}
        if "error" in answer:
            self.close()
            raise Failed(f"{method}: {answer['error']}")
        return answer

    def _last_log_line(self) -> str:
        lines = self.log.read_text().strip().splitlines()
        return lines[-1] if lines else "it ended without a message"


class Ours:
    """The web server and the worker as `up` runs them. A tenant is an instance; vectors are made by the worker."""

    name = OURS
    modes: Sequence[str] = ("hybrid", "vector")

    def __init__(self, console: Console, server: int, material: Path, version: str, embed: Callable[[], None]) -> None:
        self.console, self.embed = console, embed
        # This process parses the answers, so its time counts too.
        self.processes: Sequence[int] = [server, os.getpid()]
        self.versions = {"memory-console": version}
        stored = json.loads((material / "material.json").read_text())
        self.tenants: dict[str, list[int]] = dict(stored["tenants"])
        self.texts: list[str] = stored["texts"]
        self.categories: list[str] = stored["categories"]
        self.questions: list[str] = stored["questions"]
        self.number_of = {text: number for number, text in enumerate(self.texts)}
        for tenant in self.tenants:
            console.call("POST", "/instances", {"slug": tenant, "language": "english", "embedder": "openai"})

    def fill(self, tenants: Sequence[str]) -> float:
        """Save all rows, then have them embedded."""
        start = perf_counter()
        for tenant in tenants:
            first, last = self.tenants[tenant]
            for number in range(first, last, BULK):
                self._save(tenant, range(number, min(number + BULK, last)))
        self.embed()
        for tenant in tenants:
            self._wait(tenant)
        return perf_counter() - start

    def settle(self) -> float:
        """Have the worker do its periodic jobs now.

        This process does not, because the worker may do the same at any time: they would get in each other's way.
        """
        from memories import jobs

        start = perf_counter()
        for job in (jobs.fold_counts, jobs.count_common_words, jobs.build_vector_indexes):
            run_in_worker(job)
        analyze()
        return perf_counter() - start

    def add(self, first: int, last: int, batch: int, seconds: float) -> dict[str, Any]:
        tenant = next(iter(self.tenants))
        start, added = perf_counter(), first
        while added < last and perf_counter() - start < seconds:
            numbers = range(added, min(added + batch, last))
            self._save(tenant, numbers)
            added = numbers.stop
        saved = perf_counter() - start
        self._wait(tenant)
        return {"added": added - first, "seconds": perf_counter() - start, "saved_seconds": saved}

    def search(self, tenant: str, mode: str, category: str, questions: Sequence[int], limit: int) -> dict[str, Any]:
        milliseconds, found = [], []
        for question in questions:
            parameters = {"instanceId": tenant, "search": self.questions[question], "mode": mode, "limit": limit}
            parameters |= {"category": category} if category else {}
            start = perf_counter()
            answer = self.console.call("GET", "/memories", **parameters)
            milliseconds.append((perf_counter() - start) * 1000)
            if answer["searchMode"] != mode:
                raise Failed(f"{mode} search was {answer['searchMode']}: {answer.get('reason')}")
            found.append([self.number_of[hit["content"]] for hit in answer["memories"]])
        return {"ms": milliseconds, "found": found}

    def close(self) -> None:
        """Server, worker and database end with the benchmark."""

    def _save(self, tenant: str, numbers: Sequence[int]) -> None:
        drafts = [{"content": self.texts[number], "category": self.categories[number]} for number in numbers]
        if len(drafts) == 1:
            self.console.call("POST", "/memories", {"instanceId": tenant, **drafts[0]})
        else:
            self.console.call("POST", "/memories/bulk", {"instanceId": tenant, "memories": drafts})

    def _wait(self, tenant: str) -> None:
        pending: dict[str, Any] = {"instanceId": tenant, "embedding": "pending", "limit": 1}
        while self.console.call("GET", "/memories", **pending)["total"]:
            time.sleep(0.05)


def run_in_worker(task: Any) -> None:
    from procrastinate.contrib.django.models import ProcrastinateJob
    from procrastinate.exceptions import AlreadyEnqueued

    with contextlib.suppress(AlreadyEnqueued):
        task.defer(timestamp=0)
    waiting = ProcrastinateJob.objects.filter(task_name=task.name, status__in=["todo", "doing"])
    while waiting.exists():
        time.sleep(0.1)
