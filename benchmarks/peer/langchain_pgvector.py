"""langchain-postgres: a PGVectorStore with HybridSearchConfig, and with tenant and category as columns.

Words and vectors are merged by its reciprocal rank fusion. `open_indexed` has the HNSW index of its documentation,
`open_exact` no vector index; both have an index on tenant and category and one on the words.
"""

from collections.abc import Sequence
from typing import Any

import copying
from known_vectors import KnownVectors
from serve import Place

DEPTH = 40
COLUMNS = {
    "langchain_id": "id",
    "embedding": "vector",
    "content": "content",
    "content_tsv": "to_tsvector('pg_catalog.english', content)",
    "tenant": "tenant",
    "category": "category",
    "number": "number",
    "langchain_metadata": "'{}'::json",
}


class LangchainPostgres:
    packages = ("langchain-postgres", "langchain-core", "sqlalchemy", "psycopg")
    modes = ("hybrid", "vector")

    def __init__(self, place: Place, name: str, *, hnsw: bool) -> None:
        from langchain_postgres import Column, PGEngine, PGVectorStore

        self.place, self.name, self.hnsw = place, name, hnsw
        engine = PGEngine.from_connection_string(place.database.replace("postgresql://", "postgresql+psycopg://"))
        metadata = [Column(column, "TEXT", nullable=False) for column in ("tenant", "category")]
        metadata.append(Column("number", "INTEGER", nullable=False))
        engine.init_vectorstore_table(name, 1536, metadata_columns=metadata, hybrid_search_config=self.hybrid(""))
        embedder, columns = KnownVectors(place.material), [column.name for column in metadata]
        self.store = PGVectorStore.create_sync(
            engine, embedder, name, metadata_columns=columns, hybrid_search_config=self.hybrid("")
        )
        self.vectors_only = PGVectorStore.create_sync(engine, embedder, name, metadata_columns=columns)
        copying.execute(place.database, f'CREATE INDEX ON "{name}" (tenant, category)')

    def hybrid(self, question: str) -> Any:
        """Made anew for every search, because a configuration keeps the first question it is used with."""
        from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig, reciprocal_rank_fusion

        return HybridSearchConfig(
            tsv_column="content_tsv",
            fts_query=question,
            fusion_function=reciprocal_rank_fusion,
            primary_top_k=DEPTH,
            secondary_top_k=DEPTH,
            index_name=f"{self.name}_words",
        )

    def fill(self, tenants: Sequence[str]) -> None:
        """By COPY, because it inserts row by row; the indexes are made by its own calls."""
        from langchain_postgres.v2.indexes import HNSWIndex

        copying.copy_rows(self.place, self.name, COLUMNS, tenants)
        self.store.apply_hybrid_search_index()
        if self.hnsw:
            self.store.apply_vector_index(HNSWIndex(name=f"{self.name}_vectors"))

    def settle(self) -> None:
        copying.execute(self.place.database, f'VACUUM ANALYZE "{self.name}"')

    def add(self, numbers: Sequence[int]) -> None:
        material = self.place.material
        self.store.add_texts(
            [material.texts[number] for number in numbers],
            metadatas=[
                {"tenant": material.tenant_of(number), "category": material.categories[number], "number": number}
                for number in numbers
            ],
        )

    def catch_up(self) -> None:
        """Nothing to do: every add updates the indexes."""

    def search(self, tenant: str, mode: str, category: str, question: int, limit: int) -> list[int]:
        text = self.place.material.questions[question]
        condition = {"tenant": tenant} | ({"category": category} if category else {})
        if mode == "vector":
            found = self.vectors_only.similarity_search(text, k=limit, filter=condition)
        else:
            found = self.store.similarity_search(
                text, k=limit, filter=condition, hybrid_search_config=self.hybrid(text)
            )
        return [document.metadata["number"] for document in found]


def open_indexed(place: Place) -> LangchainPostgres:
    return LangchainPostgres(place, "langchain", hnsw=True)


def open_exact(place: Place) -> LangchainPostgres:
    return LangchainPostgres(place, "langchain_exact", hnsw=False)
