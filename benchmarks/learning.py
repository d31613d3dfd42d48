"""Is everything learnt from conversations exactly once while workers are killed and the language model fails?

    .venv/bin/python benchmarks/learning.py [--conversations 200] [--clients 8] [--kills 2] [--faults 0.2]

Clients post messages one by one to a temporary console, some of them twice, as after a time-out. Meanwhile the worker
is killed with -9, and a part of the language model's answers are errors, resets, garbage, delays or babble. Users
repeat some facts, word for word or nearly so. In the end every message must be there once and in order, every fact
once, every failure visible, and the queue empty. `searchable` is the time from the answer to a message until a search
finds the fact in it: during all this, and as `calm` one conversation at a time afterwards.
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
    """One conversation: its messages, and the marks of the facts that must be remembered once each.

    A mark is the first word of a fact and occurs in no other fact.
    """

    number: int
    id: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)

    @property
    def user(self) -> str:
        return f"user{self.number}"


def make_talk(number: int) -> Talk:
    """Every fifth fact repeats an earlier one, word for word or with one word more."""
    rnd = random.Random(number)
    talk = Talk(number)
    facts: list[str] = []
    for turn in range(MESSAGES // 2):
        if turn % 5 == 4:
            fact = rnd.choice(facts) + rnd.choice(["", "", " indeed"])
        else:
            talk.marks.append("".join(rnd.choices("bcdfghjklmnpqrstvwxz", k=12)))
            others = ("".join(rnd.choices("abcdefghijklmnopqrstuvwxyz", k=8)) for _ in range(6))
            fact = f"{talk.marks[-1]} is what they call the {' '.join(others)}"
            facts.append(fact)
        for role, text in (("user", fact), ("assistant", "Noted.")):
            place = len(talk.messages) + 1
            talk.messages.append({"role": role, "content": text, "externalId": f"m{place}"})
    return talk


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
        """Set `is_over` at the end, also after an error: the other threads would never end otherwise."""
        try:
            yield
        finally:
            self.is_over.set()

    def open(self, talk: Talk) -> None:
        body = {"instanceId": SLUG, "externalId": f"talk-{talk.number}", "userId": talk.user, "channel": "chat"}
        talk.id = self.console.call("POST", "/conversations", body)["conversation"]["id"]

    def post(self, talk: Talk, place: int, rnd: random.Random) -> None:
        body = {"instanceId": SLUG, "messages": [talk.messages[place]]}
        self.console.call("POST", f"/conversations/{talk.id}/messages", body)
        again = rnd.random() < 0.05
        if again:
            self.console.call("POST", f"/conversations/{talk.id}/messages", body)
        with self.lock:
            self.posted += 1
            self.repeated += again
            if place % 10 == 1:
                self.latest = talk.user, talk.marks[place // 10 * 4], time.monotonic()

    def calm_seconds(self, number: int) -> float:
        """How long it takes until a fact is found if nothing else goes on."""
        talk = make_talk(10_000 + number)
        talk.messages, talk.marks = talk.messages[:2], talk.marks[:1]
        self.open(talk)
        self.console.call("POST", f"/conversations/{talk.id}/messages", {"instanceId": SLUG, "messages": talk.messages})
        start = time.monotonic()
        while not self.is_found(talk.user, talk.marks[0]):
            time.sleep(0.02)
        self.talks.append(talk)
        return time.monotonic() - start

    def post_all(self, talks: list[Talk]) -> None:
        """Post the conversations of one client at the same time: one message of each in turn."""
        rnd = random.Random(talks[0].number)
        for talk in talks:
            self.open(talk)
        for place in range(MESSAGES):
            for talk in talks:
                self.post(talk, place, rnd)

    def sample(self) -> None:
        """Measure again and again how long it takes until the latest fact is found."""
        while not self.is_over.is_set():
            with self.lock:
                latest, self.latest = self.latest, None
            if latest is None:
                time.sleep(0.02)
                continue
            user, mark, posted_at = latest
            while not (is_found := self.is_found(user, mark)) and not self.is_over.is_set():
                time.sleep(0.05)
            if is_found:
                self.samples.append(time.monotonic() - posted_at)

    def is_found(self, user: str, mark: str) -> bool:
        answer = self.console.call(
            "GET", "/memories", instanceId=SLUG, search=mark, owner=user, mode="keyword", limit=1
        )
        return bool(answer["memories"]) and mark in answer["memories"][0]["content"]

    def kill_workers(self, times: int) -> int:
        """Kill the worker each time another equal share of the messages has been posted; returns how often it was."""
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
        return list(all_pages(self.console, "/jobs", "jobs", state=state))

    def drain(self) -> int:
        """Wait until the queue is empty, and retry failed jobs once, as a person would; returns how many."""
        deadline = time.monotonic() + PATIENCE
        retried: set[str] = set()
        while time.monotonic() < deadline:
            if not self.jobs("queued") and not self.jobs("running"):
                failed = [job for job in self.jobs("failed") if job["id"] not in retried and self.is_still_due(job)]
                if not failed:
                    return len(retried)
                for job in failed:
                    retried.add(job["id"])
                    self.console.call("POST", f"/jobs/{job['id']}/retry", {"instanceId": SLUG})
            time.sleep(0.5)
        raise RuntimeError("The queue did not drain.")

    def is_still_due(self, job: dict[str, Any]) -> bool:
        """Whether no later job of the conversation has done its work."""
        later = [other for other in self.jobs("done") if other["conversationId"] == job["conversationId"]]
        return all(other["id"] < job["id"] for other in later if other["kind"] == job["kind"])


def all_pages(console: Console, path: str, name: str, **query: Any) -> Iterator[dict[str, Any]]:
    cursor = ""
    while cursor is not None:
        page = console.call("GET", path, instanceId=SLUG, limit=100, cursor=cursor, **query)
        yield from page[name]
        cursor = page["nextCursor"]


def what_is_wrong(run: Run) -> tuple[list[str], list[float]]:
    """Everything that is not as it must be, and how many seconds after its message each memory was written."""
    wrong: list[str] = []
    posted_at: dict[str, str] = {}
    for talk in run.talks:
        messages = list(all_pages(run.console, f"/conversations/{talk.id}", "messages"))
        if [message["content"] for message in messages] != [message["content"] for message in talk.messages]:
            wrong.append(f"conversation {talk.number}: messages are missing, double or out of order")
        posted_at |= {message["id"]: message["createdAt"] for message in messages}
    memories = list(all_pages(run.console, "/memories", "memories", source="auto"))
    marks = Counter((memory["owner"], memory["content"].split()[0]) for memory in memories)
    wanted = {(talk.user, mark) for talk in run.talks for mark in talk.marks}
    wrong += [f"{len(wanted - marks.keys())} facts are not remembered"] if wanted - marks.keys() else []
    wrong += [f"{mark} is remembered {n} times" for mark, n in marks.items() if n > 1]
    wrong += [f"{mark} was never said" for mark in marks.keys() - wanted]
    waiting = run.console.call("GET", "/reviews", instanceId=SLUG, limit=1)["total"]
    wrong += [f"{waiting} memories wait for review"] if waiting else []
    wrong += [f"job {job['id']} failed without a word" for job in run.jobs("failed") if not job["error"]]
    times = [
        (datetime.fromisoformat(memory["createdAt"]) - datetime.fromisoformat(posted_at[id])).total_seconds()
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
    run = Run(console, [make_talk(number) for number in range(options.conversations)])
    shares = [run.talks[n :: options.clients] for n in range(options.clients)]
    with ThreadPoolExecutor(SAMPLERS + 1) as others, run.until_over():
        killing = others.submit(run.kill_workers, options.kills)
        for _ in range(SAMPLERS):
            others.submit(run.sample)
        start = time.perf_counter()
        with ThreadPoolExecutor(options.clients) as clients:
            list(clients.map(run.post_all, shares))
        posting = time.perf_counter() - start
        retried = run.drain()
        draining = time.perf_counter() - start - posting
    killed = killing.result()
    calm = quantiles([run.calm_seconds(number) for number in range(CALM)])
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
