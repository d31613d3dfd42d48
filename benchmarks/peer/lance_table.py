"""LanceDB: one table, with indexes on the columns tenant and category, a full-text index, and RRFReranker.

Its documentation asks for no vector index below some hundred thousand rows, so `open_table` compares every vector of
the tenant. `open_indexed` has the default index (IVF_PQ) and compares ten times as many candidates by whole vectors.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from material import DIMENSIONS
from serve import Place

BATCH = 10_000
REFINE = 10


class LanceDB:
    packages = ("lancedb", "pyarrow")
    modes = ("hybrid", "vector")

    def __init__(self, place: Place, *, has_index: bool) -> None:
        import lancedb
        from lancedb.rerankers import RRFReranker

        self.place, self.has_index, self.is_indexed = place, has_index, False
        fields = {"row": pa.int64(), **{name: pa.string() for name in ("tenant", "category", "text")}}
        schema = pa.schema({**fields, "vector": pa.list_(pa.float32(), DIMENSIONS)})
        name = "indexed" if has_index else "memories"
        self.table = lancedb.connect(str(place.work / name)).create_table("memories", schema=schema)
        self.reranker = RRFReranker()

    def fill(self, tenants: Sequence[str]) -> None:
        for tenant in tenants:
            first, last = self.place.material.tenants[tenant]
            for start in range(first, last, BATCH):
                self.add(range(start, min(start + BATCH, last)))

    def settle(self) -> None:
        if not self.is_indexed:
            self.table.create_fts_index("text")
            for column in ("tenant", "category"):
                self.table.create_scalar_index(column, index_type="BITMAP")
            if self.has_index:
                self.table.create_index("cosine", vector_column_name="vector")
            self.is_indexed = True
        self.catch_up()

    def add(self, numbers: Sequence[int]) -> None:
        material = self.place.material
        rows = [
            {
                "row": number,
                "tenant": material.tenant_of(number),
                "category": material.categories[number],
                "text": material.texts[number],
                "vector": material.vectors[number],
            }
            for number in numbers
        ]
        self.table.add(rows)

    def catch_up(self) -> None:
        """Index the new rows. Without this they would be compared one by one."""
        self.table.optimize()

    def search(self, tenant: str, mode: str, category: str, question: int, limit: int) -> list[int]:
        material = self.place.material
        vector = material.question_vectors[question]
        if mode == "vector":
            query: Any = self.table.search(vector, query_type="vector")
        else:
            query = self.table.search(query_type="hybrid").vector(vector).text(material.questions[question])
            query = query.rerank(self.reranker)
        condition = f"tenant = '{tenant}'" + (f" AND category = '{category}'" if category else "")
        query = query.distance_type("cosine").where(condition, prefilter=True)
        if self.has_index:
            query = query.refine_factor(REFINE)
        return [hit["row"] for hit in query.select(["row", "tenant", "text"]).limit(limit).to_list()]


def open_table(place: Place) -> LanceDB:
    return LanceDB(place, has_index=False)


def open_indexed(place: Place) -> LanceDB:
    return LanceDB(place, has_index=True)
