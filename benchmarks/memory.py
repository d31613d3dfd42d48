"""How much memory does the console take, idle and with a large instance?

    .venv/bin/python benchmarks/memory.py [--memories 500000]

Memories are saved in bulk over HTTP, and the worker makes every vector with the offline embedder. Searches run
meanwhile and afterwards. `web` is the resident memory of the web server and its child process, `worker` that of the
worker, `supervisor` that of the process which watches both; pages that processes share count for each of them.
PostgreSQL is left out, because its memory is a setting.
"""

import argparse
import random
import time
from pathlib import Path
from threading import Event, Thread

from bench import fresh_console, print_table, write_result
from console import Console, started_console
from peer.words import random_text

BULK = 1000
SLUG = "large"
PARTS = ("web", "worker", "supervisor")


class Watch:
    """Samples the resident memory twice a second, and keeps the highest values since the last call of `since_last`."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.most: dict[str, float] = {}
        self._ended = Event()
        Thread(target=self._look, daemon=True).start()

    def since_last(self) -> dict[str, float]:
        time.sleep(1)
        most, self.most = self.most, {}
        return most

    def _look(self) -> None:
        while not self._ended.wait(0.5):
            pids = {name: self.console.processes(name) for name in ("web", "worker")}
            for name, those in {**pids, "supervisor": [self.console.pid]}.items():
                self.most[name] = max(self.most.get(name, 0), sum(map(resident_mb, those)))

    def end(self) -> None:
        self._ended.set()


def resident_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # it has just ended
        return 0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0)


def fill(console: Console, number: int) -> None:
    rnd = random.Random(2)
    for first in range(0, number, BULK):
        drafts = [{"content": random_text(rnd, 13), "importance": 1 + n % 10} for n in range(min(BULK, number - first))]
        console.call("POST", "/memories/bulk", {"instanceId": SLUG, "memories": drafts})
        if first % 50_000 == 0:
            search(console, rnd, 20)
            print(f"{first:,} saved", flush=True)


def search(console: Console, rnd: random.Random, times: int) -> None:
    for _ in range(times):
        console.call("GET", "/memories", instanceId=SLUG, search=random_text(rnd, 5))


def embed_all(console: Console) -> None:
    rnd = random.Random(3)
    job = console.call("POST", "/jobs", {"instanceId": SLUG, "kind": "embed-memories"})["job"]
    while job["state"] not in ("done", "failed"):
        search(console, rnd, 20)
        time.sleep(2)
        job = console.call("GET", f"/jobs/{job['id']}", instanceId=SLUG)["job"]
    if job["state"] == "failed":
        raise RuntimeError(job["error"])
    console.wait_until_embedded(SLUG)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=500_000)
    options = parser.parse_args()
    with started_console(API_REQUESTS_PER_MINUTE="1000000") as console:
        console.call("POST", "/instances", {"slug": SLUG, "language": "english", "embedder": "offline"})
        time.sleep(15)
        watch = Watch(console)
        time.sleep(5)
        seen = [("idle", watch.since_last())]
        search(console, random.Random(1), 50)
        seen.append(("first searches", watch.since_last()))
        fill(console, options.memories)
        seen.append(("saving", watch.since_last()))
        embed_all(console)
        seen.append(("embedding", watch.since_last()))
        search(console, random.Random(4), 200)
        seen.append(("searching", watch.since_last()))
        watch.end()
    fresh_console()  # write_result asks it for the version of PostgreSQL
    idle = sum(seen[0][1].values())
    rows = [
        {"while": name, **{f"{part}_mb": mb[part] for part in PARTS}, "grown_mb": sum(mb.values()) - idle}
        for name, mb in seen
    ]
    print_table(["at most, MB, while", *PARTS, "more than idle"], [list(row.values()) for row in rows])
    write_result("memory", rows, memories=options.memories)


if __name__ == "__main__":
    main()
