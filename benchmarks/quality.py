"""How much does search find? Recall@10, nDCG@10 and MRR@10 on retrieval sets, through the HTTP API.

    .venv/bin/python benchmarks/quality.py SET.jsonl … [--embedder offline] [--language german] [--modes hybrid,keyword]

A set has one line per instance: {"instance", "memories": [{"id", "text", "ts"?, "meta": {"session"?}}],
"queries": [{"q", "rel": [ids], "cat"?}]}. Sessions become conversations. Sets are given by path and never copied.
With `--embedder openai` the console asks OPENAI_BASE_URL with OPENAI_API_KEY, taken from the environment.
"""

import argparse
import json
import math
import os
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean, median
from time import perf_counter
from typing import Any

from bench import fresh_console, print_table, write_result
from console import Console, started_console

BULK = 200
MEASURES = ("recall@5", "recall@10", "recall@20", "ndcg@10", "mrr@10")


def read_set(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def slug_of(path: Path) -> str:
    return path.stem.replace("_", "-").replace(".", "-").lower()[:50]


def answerable(queries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The queries that have an answer. Adversarial ones have none."""
    return [query for query in queries if query["rel"] and query.get("cat") != "adversarial"]


def load(console: Console, slug: str, memories: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Store the memories of a set; returns the set's id for each id of the console."""
    conversations: dict[Any, str] = {}
    for memory in memories:
        session = memory.get("meta", {}).get("session")
        if session is not None and session not in conversations:
            answer = console.call("POST", "/conversations", {"instanceId": slug, "externalId": str(session)})
            conversations[session] = answer["conversation"]["id"]
    ids: dict[str, str] = {}
    for start in range(0, len(memories), BULK):
        part = memories[start : start + BULK]
        drafts = [draft(memory, conversations) for memory in part]
        saved = console.call("POST", "/memories/bulk", {"instanceId": slug, "memories": drafts})["memories"]
        ids |= {new["id"]: memory["id"] for new, memory in zip(saved, part, strict=True)}
    return ids


def draft(memory: dict[str, Any], conversations: dict[Any, str]) -> dict[str, Any]:
    fields = {"content": memory["text"]}
    if memory.get("ts"):
        fields["occurredAt"] = memory["ts"]
    if memory.get("meta", {}).get("session") in conversations:
        fields["sourceConversationId"] = conversations[memory["meta"]["session"]]
    return fields


def scores(ranking: Sequence[str], relevant: Sequence[str]) -> dict[str, float]:
    wanted = set(relevant)
    gains = [1 / math.log2(place + 2) for place, id in enumerate(ranking[:10]) if id in wanted]
    best = sum(1 / math.log2(place + 2) for place in range(min(10, len(wanted))))
    first = next((place for place, id in enumerate(ranking[:10], 1) if id in wanted), 0)
    recalls = {f"recall@{k}": len(wanted & set(ranking[:k])) / len(wanted) for k in (5, 10, 20)}
    return {**recalls, "ndcg@10": sum(gains) / best, "mrr@10": 1 / first if first else 0.0}


def measure(console: Console, path: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    questions: list[tuple[str, dict[str, str], dict[str, Any]]] = []
    for number, instance in enumerate(read_set(path)):
        slug = f"{slug_of(path)}-{number}"
        settings = {"slug": slug, "language": options.language, "embedder": options.embedder}
        console.call("POST", "/instances", settings)
        ids = load(console, slug, instance["memories"])
        console.wait_until_embedded(slug)
        questions += [(slug, ids, query) for query in answerable(instance["queries"])]
    return [row for mode in options.modes.split(",") for row in ask_all(console, path.stem, mode, questions)]


def ask_all(
    console: Console, name: str, mode: str, questions: Sequence[tuple[str, dict[str, str], dict[str, Any]]]
) -> list[dict[str, Any]]:
    def ask(question: tuple[str, dict[str, str], dict[str, Any]]) -> tuple[dict[str, float], float]:
        slug, ids, query = question
        start = perf_counter()
        hits = console.call("GET", "/memories", instanceId=slug, search=query["q"], mode=mode, limit=20)["memories"]
        milliseconds = (perf_counter() - start) * 1000
        return scores([ids[hit["id"]] for hit in hits], query["rel"]), milliseconds

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(ask, questions))
    groups: dict[str, list[dict[str, float]]] = defaultdict(list)
    for (_, _, query), (score, _) in zip(questions, answers, strict=True):
        groups["all"].append(score)
        if query.get("cat"):
            groups[query["cat"]].append(score)
    p50_ms = median(milliseconds for _, milliseconds in answers)
    return [
        {"set": name, "mode": mode, "queries": group, "n": len(members)}
        | {measure: 100 * mean(score[measure] for score in members) for measure in MEASURES}
        | {"p50_ms": p50_ms if group == "all" else None}
        for group, members in groups.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--embedder", default="offline", choices=["openai", "azure", "offline"])
    parser.add_argument("--language", default="english")
    parser.add_argument("--modes", default="hybrid,keyword,vector")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    environment = {name: os.environ[name] for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL") if name in os.environ}
    with started_console(**environment) as console:
        for path in options.sets:
            rows += measure(console, path, options)
    head = ["set", "mode", "queries", "n", *MEASURES, "p50 ms"]
    print_table(head, [[cell if cell is not None else "" for cell in row.values()] for row in rows])
    fresh_console()
    write_result(f"quality-{options.embedder}-{options.language}", rows, embedder=options.embedder)


if __name__ == "__main__":
    main()
