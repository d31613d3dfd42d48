"""How much longer than a search does a recall take, and what does its log add? Over HTTP, at several sizes.

    .venv/bin/python benchmarks/recall.py [--sizes 10000,100000] [--times 200]

The instances are filled as in `search.py`. Three calls take turns with the same questions, so that other load on the
machine affects all of them alike: `GET /memories?search=`, `POST /recall`, and `POST /recall` while the instance keeps
no log. Every recall names an end user, as the engine of an assistant does.
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


def measure(server: Server, slug: str, texts: list[str]) -> dict[str, Any]:
    from instances.models import Instance

    def search(question: str) -> object:
        return server.request("GET", "/memories", {"instanceId": slug, "search": question})

    def recall(question: str) -> object:
        return server.request("POST", "/recall", {"instanceId": slug, "query": question, "userId": "user20"})

    def keep_log(days: int) -> None:
        Instance.objects.filter(slug=slug).update(recall_log_days=days)

    measured: dict[str, list[float]] = {"search": [], "recall": [], "no log": []}
    for number, question in enumerate([*texts[:WARM_UP], *texts]):
        calls = [("search", search), ("recall", recall), ("no log", recall)]
        for name, call in calls[number % 3 :] + calls[: number % 3]:
            keep_log(0 if name == "no log" else 30)
            milliseconds = timed(call, question)
            if number >= WARM_UP:
                measured[name].append(milliseconds)
    return {f"{name} {which}": pick(measured[name]) for name in measured for which, pick in PICKS.items()}


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
