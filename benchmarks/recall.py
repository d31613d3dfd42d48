"""What does recall cost beside search, and the log beside recall? Over HTTP, on the same store, at several sizes.

    .venv/bin/python benchmarks/recall.py [--sizes 10000,100000] [--times 200]

Stores are those of `search.py`. The calls take turns with the same questions, so that whatever else the machine does
falls on all of them alike: `GET /memories?search=`, `POST /recall`, and `POST /recall` while the instance keeps no log.
Every recall names an end user, as an engine does.
"""

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

from bench import Server, api_key, fresh_console, percentile_95, print_table, write_result
from peer.words import questions
from search import fill, make_material

WARM_UP = 10


def measure(server: Server, slug: str, asked: list[str]) -> dict[str, Any]:
    from instances.models import Instance

    def searches(question: str) -> object:
        return server.ask("GET", "/memories", {"instanceId": slug, "search": question})

    def recalls(question: str) -> object:
        return server.ask("POST", "/recall", {"instanceId": slug, "query": question, "userId": "user20"})

    def keep_log(days: int) -> None:
        Instance.objects.filter(slug=slug).update(recall_log_days=days)

    taken: dict[str, list[float]] = {"search": [], "recall": [], "no log": []}
    for number, question in enumerate([*asked[:WARM_UP], *asked]):
        rounds = [("search", searches), ("recall", recalls), ("no log", recalls)]
        for name, call in rounds[number % 3 :] + rounds[: number % 3]:
            keep_log(0 if name == "no log" else 30)
            milliseconds = timed(call, question)
            if number >= WARM_UP:
                taken[name].append(milliseconds)
    return {f"{name} {which}": pick(taken[name]) for name in taken for which, pick in PICKS.items()}


def timed(call: Callable[[str], object], question: str) -> float:
    start = perf_counter()
    call(question)
    return (perf_counter() - start) * 1000


PICKS: dict[str, Callable[[list[float]], float]] = {"p50": median, "p95": percentile_95}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--times", type=int, default=200)
    options = parser.parse_args()
    fresh_console()
    make_material()
    sizes = [int(size) for size in options.sizes.split(",")]
    slugs = [fill(size).instance.slug for size in sizes]
    server = Server(api_key())
    rows: list[dict[str, Any]] = []
    for size, slug in zip(sizes, slugs, strict=True):
        row = {"memories": size, **measure(server, slug, questions(options.times))}
        for which in PICKS:
            row[f"recall / search {which}"] = row[f"recall {which}"] / row[f"search {which}"]
            row[f"log adds {which}"] = row[f"recall {which}"] / row[f"no log {which}"] - 1
        rows.append(row)
    print_table(list(rows[0]), [list(row.values()) for row in rows])
    write_result("recall", rows, times=options.times)


if __name__ == "__main__":
    main()
