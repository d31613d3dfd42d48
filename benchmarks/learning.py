"""Does learning from conversations lose, double or hide anything while everything around it fails?

    .venv/bin/python benchmarks/learning.py [--conversations 200] [--clients 8] [--kills 2] [--faults 0.2]

Clients post messages one by one to a console of their own, and some of them twice, as after a time-out. Meanwhile the
worker is killed with -9, and a part of the language model's answers are faults: errors, resets, garbage, delays,
babble. Users say some facts again, word for word or nearly so. In the end every message must be there once and in
order, every fact once, every failure visible, and the queue empty. `searchable` is the time from the answer to a
message until a search finds the fact in it: while all this goes on, and `calm`, one conversation at a time afterwards.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.request import urlopen

from bench import ROOT, fresh_console, print_table, write_result
from console import Console, started_console

SLUG = "learning"
MESSAGES = 20
SAMPLERS = 2
CALM = 30
PATIENCE = 900


@dataclass
class Talk:
    """One conversation: what is said in it, and the marks of the facts that must be remembered, each once."""

    number: int
    id: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)

    @property
    def user(self) -> str:
        return f"user{self.number}"


def talk(number: int) -> Talk:
    """Every fifth fact was said before, word for word or with a word more."""
    rnd = random.Random(number)
    found = Talk(number)
    facts: list[str] = []
    for turn in range(MESSAGES // 2):
        if turn % 5 == 4:
            said = rnd.choice(facts) + rnd.choice(["", "", " indeed"])
        else:
            found.marks.append("".join(rnd.choices("bcdfghjklmnpqrstvwxz", k=12)))
            others = ("".join(rnd.choices("abcdefghijklmnopqrstuvwxyz", k=8)) for _ in range(6))
            said = f"{found.marks[-1]} is what they call the {' '.join(others)}"
            facts.append(said)
        for role, text in (("user", said), ("assistant", "Noted.")):
            place = len(found.messages) + 1
            found.messages.append({"role": role, "content": text, "externalId": f"m{place}"})
    return found


class Run:
    def __init__(self, console: Console, talks: list[Talk]) -> None:
        self.console, self.talks = console, talks
        self.lock = threading.Lock()
        self.posted, self.repeated = 0, 0
        self.samples: list[float] = []
        self.latest: tuple[str, str, float] | None = None
        self.is_over = threading.Event()

    @contextmanager
    def until_over(self) -> Iterator[None]:
        """Also when something goes wrong: otherwise the other threads would go on for ever."""
        try:
            yield
        finally:
            self.is_over.set()

    def open(self, each: Talk) -> None:
        body = {"instanceId": SLUG, "externalId": f"talk-{each.number}", "userId": each.user, "channel": "chat"}
        each.id = self.console.call("POST", "/conversations", body)["conversation"]["id"]

    def post(self, each: Talk, place: int, rnd: random.Random) -> None:
        body = {"instanceId": SLUG, "messages": [each.messages[place]]}
        self.console.call("POST", f"/conversations/{each.id}/messages", body)
        again = rnd.random() < 0.05
        if again:
            self.console.call("POST", f"/conversations/{each.id}/messages", body)
        with self.lock:
            self.posted += 1
            self.repeated += again
            if place % 10 == 1:
                self.latest = each.user, each.marks[place // 10 * 4], time.monotonic()

    def calm(self, number: int) -> float:
        """How long it takes until a fact is found when nothing else goes on."""
        each = talk(10_000 + number)
        each.messages, each.marks = each.messages[:2], each.marks[:1]
        self.open(each)
        self.console.call("POST", f"/conversations/{each.id}/messages", {"instanceId": SLUG, "messages": each.messages})
        start = time.monotonic()
        while not self.found(each.user, each.marks[0]):
            time.sleep(0.02)
        self.talks.append(each)
        return time.monotonic() - start

    def client(self, own: list[Talk]) -> None:
        """All of its conversations at the same time, a message of each in turn."""
        rnd = random.Random(own[0].number)
        for each in own:
            self.open(each)
        for place in range(MESSAGES):
            for each in own:
                self.post(each, place, rnd)

    def sample(self) -> None:
        """How long until the fact that was said last is found."""
        while not self.is_over.is_set():
            with self.lock:
                wanted, self.latest = self.latest, None
            if wanted is None:
                time.sleep(0.02)
                continue
            user, mark, since = wanted
            while not (found := self.found(user, mark)) and not self.is_over.is_set():
                time.sleep(0.05)
            if found:
                self.samples.append(time.monotonic() - since)

    def found(self, user: str, mark: str) -> bool:
        answer = self.console.call(
            "GET", "/memories", instanceId=SLUG, search=mark, owner=user, mode="keyword", limit=1
        )
        return bool(answer["memories"]) and mark in answer["memories"][0]["content"]

    def kill(self, times: int) -> int:
        """The worker, at equal distances of what is posted."""
        killed = 0
        while killed < times and not self.is_over.is_set():
            due = len(self.talks) * MESSAGES * (killed + 1) // (times + 1)
            workers = self.console.processes("worker") if self.posted >= due else []
            if workers:
                os.kill(workers[0], signal.SIGKILL)
                killed += 1
            time.sleep(0.2)
        return killed

    def jobs(self, state: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor = ""
        while cursor is not None:
            page = self.console.call("GET", "/jobs", instanceId=SLUG, state=state, limit=100, cursor=cursor)
            found, cursor = [*found, *page["jobs"]], page["nextCursor"]
        return found

    def drain(self) -> int:
        """Until nothing waits; what failed is tried again, as a person would. How many that were."""
        deadline = time.monotonic() + PATIENCE
        retried: set[str] = set()
        while time.monotonic() < deadline:
            if not self.jobs("queued") and not self.jobs("running"):
                failed = [job for job in self.jobs("failed") if job["id"] not in retried and self.is_behind(job)]
                if not failed:
                    return len(retried)
                for job in failed:
                    retried.add(job["id"])
                    self.console.call("POST", f"/jobs/{job['id']}/retry", {"instanceId": SLUG})
            time.sleep(0.5)
        raise RuntimeError("The queue did not drain.")

    def is_behind(self, job: dict[str, Any]) -> bool:
        """Whether no later job of the conversation has done it."""
        later = [other for other in self.jobs("done") if other["conversationId"] == job["conversationId"]]
        return all(other["id"] < job["id"] for other in later if other["kind"] == job["kind"])


def everything(console: Console, path: str, name: str, **query: Any) -> Iterator[dict[str, Any]]:
    cursor = ""
    while cursor is not None:
        page = console.call("GET", path, instanceId=SLUG, limit=100, cursor=cursor, **query)
        yield from page[name]
        cursor = page["nextCursor"]


def what_is_wrong(run: Run) -> tuple[list[str], list[float]]:
    """Everything that is not as it must be, and how long after its message each memory was written."""
    wrong: list[str] = []
    said_at: dict[str, str] = {}
    for each in run.talks:
        messages = list(everything(run.console, f"/conversations/{each.id}", "messages"))
        if [message["content"] for message in messages] != [message["content"] for message in each.messages]:
            wrong.append(f"conversation {each.number}: messages are missing, double or out of order")
        said_at |= {message["id"]: message["createdAt"] for message in messages}
    memories = list(everything(run.console, "/memories", "memories", source="auto"))
    marks = Counter((memory["owner"], memory["content"].split()[0]) for memory in memories)
    wanted = {(each.user, mark) for each in run.talks for mark in each.marks}
    wrong += [f"{len(wanted - marks.keys())} facts are not remembered"] if wanted - marks.keys() else []
    wrong += [f"{mark} is remembered {n} times" for mark, n in marks.items() if n > 1]
    wrong += [f"{mark} was never said" for mark in marks.keys() - wanted]
    waiting = run.console.call("GET", "/reviews", instanceId=SLUG, limit=1)["total"]
    wrong += [f"{waiting} memories wait for review"] if waiting else []
    wrong += [f"job {job['id']} failed without a word" for job in run.jobs("failed") if not job["error"]]
    times = [
        (datetime.fromisoformat(memory["createdAt"]) - datetime.fromisoformat(said_at[id])).total_seconds()
        for memory in memories
        for id in memory["sourceMessageIds"][:1]
        if memory["createdAt"] == memory["updatedAt"]
    ]
    return wrong, times


@contextmanager
def moody_model(faults: float) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.openai_server", "--moody", str(faults), "--latency", "0.05"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(10)


def quantiles(values: list[float]) -> tuple[float, float, float]:
    ordered = sorted(values) or [0.0]
    return statistics.median(ordered), ordered[int(len(ordered) * 0.95)], ordered[-1]


def measure(console: Console, url: str, options: argparse.Namespace) -> dict[str, Any]:
    console.call("POST", "/instances", {"slug": SLUG})
    run = Run(console, [talk(number) for number in range(options.conversations)])
    shares = [run.talks[n :: options.clients] for n in range(options.clients)]
    with ThreadPoolExecutor(SAMPLERS + 1) as others, run.until_over():
        killing = others.submit(run.kill, options.kills)
        for _ in range(SAMPLERS):
            others.submit(run.sample)
        start = time.perf_counter()
        with ThreadPoolExecutor(options.clients) as clients:
            list(clients.map(run.client, shares))
        posting = time.perf_counter() - start
        retried = run.drain()
        draining = time.perf_counter() - start - posting
    killed = killing.result()
    calm = quantiles([run.calm(number) for number in range(CALM)])
    wrong, times = what_is_wrong(run)
    with urlopen(f"{url.removesuffix('/v1')}/_faults") as answer:
        model = json.load(answer)
    jobs = Counter(job["kind"] + " " + job["state"] for state in ("done", "failed") for job in run.jobs(state))
    searchable, written = quantiles(run.samples), quantiles(times)
    return {
        "messages": run.posted,
        "posted_twice": run.repeated,
        "messages_per_second": run.posted / posting,
        "drained_after_s": draining,
        "calm_searchable_p50_s": calm[0],
        "calm_searchable_p95_s": calm[1],
        "searchable_p50_s": searchable[0],
        "searchable_p95_s": searchable[1],
        "searchable_samples": len(run.samples),
        "stored_p50_s": written[0],
        "stored_p95_s": written[1],
        "stored_max_s": written[2],
        "worker_killed": killed,
        "model_asked": model["chats"],
        "model_faults": model["faults"],
        "tried_again_by_hand": retried,
        **dict(sorted(jobs.items())),
        "wrong": wrong,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--faults", type=float, default=0.2)
    options = parser.parse_args()
    with (
        moody_model(options.faults) as url,
        started_console(OPENAI_BASE_URL=url, OPENAI_API_KEY="sk-good", API_REQUESTS_PER_MINUTE="1000000") as console,
    ):
        row = measure(console, url, options)
    print_table(["", "value"], [[name, value] for name, value in row.items() if name != "wrong"])
    print("\n".join(row["wrong"]) or "\nEvery message once and in order, every fact once, every failure visible.")
    fresh_console()
    write_result("learning", [row], **vars(options))
    sys.exit(bool(row["wrong"]))


if __name__ == "__main__":
    main()
