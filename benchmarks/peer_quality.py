"""Recall@10 of the peers and the console on retrieval sets, with the same rows and vectors for all."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from console import Console
from embedding_server import EmbeddingServer
from peer_setting import LIMIT, Setting
from peer_systems import OURS, System
from quality import answerable, load, read_set, scores, slug_of

# Sets are small, so the peers that can search without an index do so.
PEERS = ["mem0 exact", "langchain-postgres exact", "chromadb", "lancedb"]


class RetrievalSet:
    """A retrieval set: its instances are the tenants, and its answerable queries the questions."""

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        self.slug = slug_of(path)
        self.instances = read_set(path)
        self.tenants: list[tuple[str, tuple[int, int]]] = []
        self.texts: list[str] = []
        self.ids: list[str] = []
        self.queries: list[tuple[str, dict[str, Any]]] = []
        for number, instance in enumerate(self.instances):
            self._add(f"{self.slug}-{number}", instance)

    def _add(self, tenant: str, instance: dict[str, Any]) -> None:
        first = len(self.texts)
        self.texts += [memory["text"] for memory in instance["memories"]]
        self.ids += [memory["id"] for memory in instance["memories"]]
        self.tenants.append((tenant, (first, len(self.texts))))
        self.queries += [(tenant, query) for query in answerable(instance["queries"])]

    def write(self, directory: Path, embeddings: EmbeddingServer) -> None:
        """Write the files that `peer/material.py` reads."""
        questions = [query["q"] for _, query in self.queries]
        material = {"tenants": self.tenants, "texts": self.texts, "questions": questions}
        material["categories"] = ["fact"] * len(self.texts)
        (directory / "material.json").write_text(json.dumps(material))
        for name, texts in (("vectors", self.texts), ("questions", questions)):
            (directory / f"{name}.f32").write_bytes(b"".join(embeddings.vectors(texts)))


def quality(setting: Setting, sets: Sequence[RetrievalSet]) -> list[dict[str, Any]]:
    for dataset in sets:
        dataset.write(setting.directory(dataset.slug), setting.embeddings)
    ids = {dataset.slug: store_ours(setting.console, dataset) for dataset in sets}
    setting.embed()
    return [row for dataset in sets for row in recalls(setting, dataset, ids[dataset.slug])]


def store_ours(console: Console, dataset: RetrievalSet) -> dict[str, dict[str, str]]:
    """Store a set through the API, sessions as conversations.

    Returns for each tenant the set's id of each id of the console.
    """
    ids: dict[str, dict[str, str]] = {}
    for (slug, _), instance in zip(dataset.tenants, dataset.instances, strict=True):
        console.call("POST", "/instances", {"slug": slug, "language": "english", "embedder": "openai"})
        ids[slug] = load(console, slug, instance["memories"])
    return ids


def recalls(setting: Setting, dataset: RetrievalSet, ids: dict[str, dict[str, str]]) -> list[dict[str, Any]]:
    comparison = setting.compare(PEERS, setting.work / dataset.slug, ours=False)
    comparison.each(lambda system: (system.fill([tenant for tenant, _ in dataset.tenants]), system.settle()))
    recall_of = {OURS: our_recall(setting.console, dataset, ids)}

    def search_all(system: System) -> None:
        rankings = [
            system.search(tenant, system.modes[0], "", [number], LIMIT)["found"][0]
            for number, (tenant, _) in enumerate(dataset.queries)
        ]
        recall_of[system.name] = [
            scores([dataset.ids[n] for n in ranking], query["rel"])["recall@10"]
            for ranking, (_, query) in zip(rankings, dataset.queries, strict=True)
        ]

    comparison.each(search_all)
    setting.end(comparison)
    percent = {name: 100 * mean(recalls) for name, recalls in recall_of.items()}
    return [
        {"set": dataset.name, "system": name, "n": len(dataset.queries), "recall@10": value}
        | {"ours-theirs": percent[OURS] - value}
        for name, value in percent.items()
    ]


def our_recall(console: Console, dataset: RetrievalSet, ids: dict[str, dict[str, str]]) -> list[float]:
    for slug in ids:
        console.wait_until_embedded(slug)
    recalls = []
    for slug, query in dataset.queries:
        hits = console.call("GET", "/memories", instanceId=slug, search=query["q"], limit=LIMIT)["memories"]
        recalls.append(scores([ids[slug][hit["id"]] for hit in hits], query["rel"])["recall@10"])
    return recalls
