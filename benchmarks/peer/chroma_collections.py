"""Chroma on disk: a collection for each tenant, with given vectors and cosine. It does not search by words.

`open_collections` runs it in this process, `open_served` as a server on loopback, started by `chroma run`.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from serve import Place

os.environ["ANONYMIZED_TELEMETRY"] = "False"


class Chroma:
    packages = ("chromadb",)
    modes = ("vector",)

    def __init__(self, place: Place, client: Any) -> None:
        self.place, self.client = place, client
        # A server takes fewer rows than it reports, because a request is limited to 40 MB.
        self.batch = min(client.get_max_batch_size(), 1000)
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
        """Nothing to do: every add updates the index."""

    def add(self, numbers: Sequence[int]) -> None:
        material = self.place.material
        self.collections[material.tenant_of(numbers[0])].add(
            ids=[str(number) for number in numbers],
            embeddings=material.vectors[numbers[0] : numbers[-1] + 1],
            documents=[material.texts[number] for number in numbers],
            metadatas=[{"category": material.categories[number]} for number in numbers],
        )

    def catch_up(self) -> None:
        """Nothing to do: every add updates the index."""

    def search(self, tenant: str, mode: str, category: str, question: int, limit: int) -> list[int]:
        vector = self.place.material.question_vectors[question]
        condition: Any = {"category": category} if category else None
        found = self.collections[tenant].query(query_embeddings=[vector], n_results=limit, where=condition)
        return [int(id) for id in found["ids"][0]]


def open_collections(place: Place) -> Chroma:
    import chromadb
    from chromadb.config import Settings

    return Chroma(place, chromadb.PersistentClient(str(place.work / "chroma"), Settings(anonymized_telemetry=False)))


def open_served(place: Place) -> Chroma:
    """The server is a child of this process, and ends with it."""
    import atexit

    import chromadb

    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).parent / "chroma"), "run", "--path", str(place.work / "chroma")]
    server = subprocess.Popen([*command, "--host", "127.0.0.1", "--port", str(port)], stdout=sys.stderr)
    atexit.register(server.terminate)
    for _ in range(100):
        try:
            return Chroma(place, chromadb.HttpClient("127.0.0.1", port))
        except ValueError:  # it does not listen yet
            time.sleep(0.1)
    raise RuntimeError("The server does not answer.")
