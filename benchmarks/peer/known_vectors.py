"""LangChain's idea of an embedder that knows every vector already: no peer's time contains any embedding."""

from langchain_core.embeddings import Embeddings
from material import Material


class KnownVectors(Embeddings):
    def __init__(self, material: Material) -> None:
        self.material = material

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self.material.vector_of[text].tolist()
        return vector

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]
