"""Chroma, persistent on disk: a collection for each tenant, vectors given, cosine. It has no search for words."""

import os
from collections.abc import Sequence
from typing import Any

from serve import Place


class Chroma:
    packages = ("chromadb",)
    modes = ("vector",)

    def __init__(self, place: Place) -> None:
        os.environ["ANONYMIZED_TELEMETRY"] = "False"
        import chromadb
        from chromadb.config import Settings

        self.place = place
        self.client = chromadb.PersistentClient(str(place.work / "chroma"), Settings(anonymized_telemetry=False))
        self.batch = self.client.get_max_batch_size()
        self.collections = {tenant: self.collection(tenant) for tenant in place.material.tenants}

    def collection(self, tenant: str) -> Any:
        configuration = {"hnsw": {"space": "cosine"}}
        return self.client.create_collection(tenant, configuration=configuration, embedding_function=None)

    def fill(self, tenants: Sequence[str]) -> None:
        for tenant in tenants:
            first, last = self.place.material.tenants[tenant]
            for start in range(first, last, self.batch):
                self.add(range(start, min(start + self.batch, last)))

    def settle(self) -> None:
        """Nothing to do: it indexes as it goes."""

    def add(self, numbers: Sequence[int]) -> None:
        material = self.place.material
        self.collections[material.tenant_of(numbers[0])].add(
            ids=[str(number) for number in numbers],
            embeddings=material.vectors[numbers[0] : numbers[-1] + 1],
            documents=[material.texts[number] for number in numbers],
        )

    def catch_up(self) -> None:
        """Nothing to do: an add is complete."""

    def search(self, tenant: str, mode: str, question: int, most: int) -> list[int]:
        vector = self.place.material.question_vectors[question]
        found = self.collections[tenant].query(query_embeddings=[vector], n_results=most)
        return [int(id) for id in found["ids"][0]]


def open_collections(place: Place) -> Chroma:
    return Chroma(place)
