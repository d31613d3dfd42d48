"""The systems `peers.py` compares, behind one face: each peer in a process of its own, and the console over HTTP."""

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
    """The system cannot be measured; why."""


class System(Protocol):
    name: str
    modes: Sequence[str]
    versions: dict[str, str]
    processes: Sequence[int]

    def fill(self, tenants: Sequence[str]) -> float: ...
    def settle(self) -> float: ...
    def add(self, first: int, last: int, batch: int, seconds: float) -> dict[str, Any]: ...
    def search(self, tenant: str, mode: str, category: str, questions: Sequence[int], most: int) -> dict[str, Any]: ...
    def close(self) -> None: ...


class Peer:
    """Asked by lines of JSON; one that fails or takes too long is given up."""

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
        about = self._ask("about")
        self.modes: Sequence[str] = about["modes"]
        self.versions: dict[str, str] = about["versions"]

    def fill(self, tenants: Sequence[str]) -> float:
        return float(self._ask("fill", tenants=tenants)["seconds"])

    def settle(self) -> float:
        return float(self._ask("settle")["seconds"])

    def add(self, first: int, last: int, batch: int, seconds: float) -> dict[str, Any]:
        return self._ask("add", first=first, last=last, batch=batch, seconds=seconds)

    def search(self, tenant: str, mode: str, category: str, questions: Sequence[int], most: int) -> dict[str, Any]:
        chosen = {"tenant": tenant, "mode": mode, "category": category}
        return self._ask("search", **chosen, questions=list(questions), most=most)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)

    def _ask(self, do: str, **asked: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **asked}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self._last_words()) from None
        if not select.select([self.process.stdout], [], [], self.patience)[0]:
            self.close()
            raise Failed(f"{do} took more than {self.patience:.0f} s")
        line = self.process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": self._last_words()}
        if "error" in answer:
            self.close()
            raise Failed(f"{do}: {answer['error']}")
        return answer

    def _last_words(self) -> str:
        lines = self.log.read_text().strip().splitlines()
        return lines[-1] if lines else "it ended without a word"


class Ours:
    """The web server and the worker as `up` runs them. A tenant is an instance; vectors are made by the worker."""

    name = OURS
    modes: Sequence[str] = ("hybrid", "vector")

    def __init__(
        self, console: Console, server: int, material: Path, version: str, begin_work: Callable[[], None]
    ) -> None:
        self.console, self.begin_work = console, begin_work
        # This process reads the answers, and is part of what it costs.
        self.processes: Sequence[int] = [server, os.getpid()]
        self.versions = {"memory-console": version}
        known = json.loads((material / "material.json").read_text())
        self.tenants: dict[str, list[int]] = dict(known["tenants"])
        self.texts: list[str] = known["texts"]
        self.categories: list[str] = known["categories"]
        self.questions: list[str] = known["questions"]
        self.number_of = {text: number for number, text in enumerate(self.texts)}
        for tenant in self.tenants:
            console.call("POST", "/instances", {"slug": tenant, "language": "english", "embedder": "openai"})

    def fill(self, tenants: Sequence[str]) -> float:
        """Saved first, embedded then."""
        start = perf_counter()
        for tenant in tenants:
            first, last = self.tenants[tenant]
            for number in range(first, last, BULK):
                self._save(tenant, range(number, min(number + BULK, last)))
        self.begin_work()
        for tenant in tenants:
            self._wait(tenant)
        return perf_counter() - start

    def settle(self) -> float:
        """What the worker does every few minutes. It is asked to, because it may be about to: two would get in each
        other's way."""
        from memories import jobs

        start = perf_counter()
        for job in (jobs.fold_counts, jobs.count_common_words, jobs.build_vector_indexes):
            done_by_worker(job)
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

    def search(self, tenant: str, mode: str, category: str, questions: Sequence[int], most: int) -> dict[str, Any]:
        taken, found = [], []
        for question in questions:
            asked = {"instanceId": tenant, "search": self.questions[question], "mode": mode, "limit": most}
            asked |= {"category": category} if category else {}
            start = perf_counter()
            answer = self.console.call("GET", "/memories", **asked)
            taken.append((perf_counter() - start) * 1000)
            if answer["searchMode"] != mode:
                raise Failed(f"{mode} search was {answer['searchMode']}: {answer.get('reason')}")
            found.append([self.number_of[hit["content"]] for hit in answer["memories"]])
        return {"ms": taken, "found": found}

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


def done_by_worker(task: Any) -> None:
    from procrastinate.contrib.django.models import ProcrastinateJob
    from procrastinate.exceptions import AlreadyEnqueued

    with contextlib.suppress(AlreadyEnqueued):
        task.defer(timestamp=0)
    waiting = ProcrastinateJob.objects.filter(task_name=task.name, status__in=["todo", "doing"])
    while waiting.exists():
        time.sleep(0.1)
