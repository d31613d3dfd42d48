"""mem0 with its pgvector store: a tenant is a user, and memories are added as they are (`infer=False`).

It always searches by vectors and words together. `open_indexed` has the default HNSW index over everybody's vectors;
`open_exact` uses the option `hnsw: False`.
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
        """By COPY, because one by one it would take an hour; the index is made by mem0."""
        from mem0.utils.lemmatization import lemmatize_for_bm25

        copying.execute(self.place.database, f'DROP INDEX IF EXISTS "{self.name}_hnsw_idx"')
        columns = {"id": "id", "vector": "vector", "payload": PAYLOAD}
        copying.copy_rows(self.place, self.name, columns, tenants, lemmatize_for_bm25)
        self.memory.vector_store.create_col()

    def settle(self) -> None:
        copying.execute(self.place.database, f'VACUUM ANALYZE "{self.name}"')

    def add(self, numbers: Sequence[int]) -> None:
        material = self.place.material
        for number in numbers:
            user, metadata = material.tenant_of(number), {"row": number, "category": material.categories[number]}
            self.memory.add(material.texts[number], user_id=user, metadata=metadata, infer=False)

    def catch_up(self) -> None:
        """Nothing to do: every add updates the indexes."""

    def search(self, tenant: str, mode: str, category: str, question: int, limit: int) -> list[int]:
        condition = {"user_id": tenant} | ({"category": category} if category else {})
        text = self.place.material.questions[question]
        found: dict[str, Any] = self.memory.search(text, top_k=limit, filters=condition)
        return [hit["metadata"]["row"] for hit in found["results"]]


def open_indexed(place: Place) -> Mem0:
    return Mem0(place, "mem0", hnsw=True)


def open_exact(place: Place) -> Mem0:
    return Mem0(place, "mem0_exact", hnsw=False)
