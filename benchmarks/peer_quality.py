"""Recall@10 of peers and console on retrieval sets, the same rows with the same vectors for all."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from console import Console
from embedding_server import EmbeddingServer
from peer_setting import MOST, Setting
from peer_systems import OURS, System
from quality import answerable, load, read_set, scores, slug_of

# Sets are small: everything that can search exactly does.
PEERS = ["mem0 exact", "langchain-postgres exact", "chromadb", "lancedb"]


class RetrievalSet:
    """A set's instances as tenants, its queries as questions; adversarial ones have no answer to find."""

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        self.slug = slug_of(path)
        self.instances = read_set(path)
        self.tenants: list[tuple[str, tuple[int, int]]] = []
        self.texts: list[str] = []
        self.ids: list[str] = []
        self.wanted: list[tuple[str, dict[str, Any]]] = []
        for number, each in enumerate(self.instances):
            self._take(f"{self.slug}-{number}", each)

    def _take(self, tenant: str, instance: dict[str, Any]) -> None:
        first = len(self.texts)
        self.texts += [memory["text"] for memory in instance["memories"]]
        self.ids += [memory["id"] for memory in instance["memories"]]
        self.tenants.append((tenant, (first, len(self.texts))))
        self.wanted += [(tenant, query) for query in answerable(instance["queries"])]

    def write(self, place: Path, embeddings: EmbeddingServer) -> None:
        questions = [query["q"] for _, query in self.wanted]
        known = {"tenants": self.tenants, "texts": self.texts, "questions": questions}
        known["categories"] = ["fact"] * len(self.texts)
        (place / "material.json").write_text(json.dumps(known))
        for name, part in (("vectors", self.texts), ("questions", questions)):
            (place / f"{name}.f32").write_bytes(b"".join(embeddings.vectors(part)))


def quality(setting: Setting, sets: Sequence[RetrievalSet]) -> list[dict[str, Any]]:
    for each in sets:
        each.write(setting.directory(each.slug), setting.embeddings)
    known = {each.slug: store_ours(setting.console, each) for each in sets}
    setting.begin_work()
    return [row for each in sets for row in recalls(setting, each, known[each.slug])]


def store_ours(console: Console, each: RetrievalSet) -> dict[str, dict[str, str]]:
    """Through the API, sessions as conversations; for each tenant, the console's ids to the set's."""
    known: dict[str, dict[str, str]] = {}
    for (slug, _), instance in zip(each.tenants, each.instances, strict=True):
        console.call("POST", "/instances", {"slug": slug, "language": "english", "embedder": "openai"})
        known[slug] = load(console, slug, instance["memories"])
    return known


def recalls(setting: Setting, each: RetrievalSet, known: dict[str, dict[str, str]]) -> list[dict[str, Any]]:
    race = setting.race(PEERS, setting.work / each.slug, ours=False)
    race.each(lambda system: (system.fill([tenant for tenant, _ in each.tenants]), system.settle()))
    found = {OURS: our_recall(setting.console, each, known)}

    def ask(system: System) -> None:
        rankings = [
            system.search(tenant, system.modes[0], "", [number], MOST)["found"][0]
            for number, (tenant, _) in enumerate(each.wanted)
        ]
        found[system.name] = [
            scores([each.ids[n] for n in ranking], query["rel"])["recall@10"]
            for ranking, (_, query) in zip(rankings, each.wanted, strict=True)
        ]

    race.each(ask)
    setting.end(race)
    percent = {name: 100 * mean(recall) for name, recall in found.items()}
    return [
        {"set": each.name, "system": name, "n": len(each.wanted), "recall@10": value}
        | {"ours-theirs": percent[OURS] - value}
        for name, value in percent.items()
    ]


def our_recall(console: Console, each: RetrievalSet, known: dict[str, dict[str, str]]) -> list[float]:
    for slug in known:
        console.wait_until_embedded(slug)
    measured = []
    for slug, query in each.wanted:
        hits = console.call("GET", "/memories", instanceId=slug, search=query["q"], limit=MOST)["memories"]
        measured.append(scores([known[slug][hit["id"]] for hit in hits], query["rel"])["recall@10"])
    return measured
