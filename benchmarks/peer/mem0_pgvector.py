"""mem0 with its pgvector store: a user is a tenant, memories are added as they are (`infer=False`).

Its search is always vectors and words together. `open_indexed` is the default, an HNSW index over everybody's vectors;
`open_exact` is the option `hnsw: False`.
"""

import os
from collections.abc import Sequence
from typing import Any

import copying
from known_vectors import KnownVectors
from serve import Place

PAYLOAD = """
jsonb_build_object('user_id', tenant, 'category', category, 'row', number, 'role', 'user', 'data', content,
    'hash', md5(content), 'created_at', now(), 'updated_at', now(), 'text_lemmatized', words)
"""


class Mem0:
    packages = ("mem0ai", "psycopg")
    modes = ("hybrid",)

    def __init__(self, place: Place, name: str, *, hnsw: bool) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(place.work / name)}
        from mem0 import Memory

        store = {"connection_string": place.database, "collection_name": name, "embedding_model_dims": 1536}
        self.place, self.name, self.hnsw = place, name, hnsw
        self.memory = Memory.from_config(
            {
                "vector_store": {"provider": "pgvector", "config": {**store, "hnsw": hnsw}},
                "embedder": {"provider": "langchain", "config": {"model": KnownVectors(place.material)}},
                "llm": {"provider": "openai", "config": {"api_key": "never asked"}},
                "history_db_path": str(place.work / f"{name}-history.db"),
            }
        )
        self.memory.vector_store.create_col()

    def fill(self, tenants: Sequence[str]) -> None:
        """One by one it would take an hour: the same rows by COPY, then the index that mem0 makes."""
        from mem0.utils.lemmatization import lemmatize_for_bm25

        copying.run(self.place.database, f'DROP INDEX IF EXISTS "{self.name}_hnsw_idx"')
        columns = {"id": "id", "vector": "vector", "payload": PAYLOAD}
        copying.rows(self.place, self.name, columns, tenants, lemmatize_for_bm25)
        self.memory.vector_store.create_col()

    def settle(self) -> None:
        copying.run(self.place.database, f'VACUUM ANALYZE "{self.name}"')

    def add(self, numbers: Sequence[int]) -> None:
        material = self.place.material
        for number in numbers:
            user, told = material.tenant_of(number), {"row": number, "category": material.categories[number]}
            self.memory.add(material.texts[number], user_id=user, metadata=told, infer=False)

    def catch_up(self) -> None:
        """Nothing to do: an add is complete."""

    def search(self, tenant: str, mode: str, category: str, question: int, most: int) -> list[int]:
        chosen = {"user_id": tenant} | ({"category": category} if category else {})
        found: dict[str, Any] = self.memory.search(self.place.material.questions[question], top_k=most, filters=chosen)
        return [hit["metadata"]["row"] for hit in found["results"]]


def open_indexed(place: Place) -> Mem0:
    return Mem0(place, "mem0", hnsw=True)


def open_exact(place: Place) -> Mem0:
    return Mem0(place, "mem0_exact", hnsw=False)
