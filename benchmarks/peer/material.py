"""What every system is given: the same texts, vectors and questions. Also the exact answers.

    python benchmarks/peer/material.py --out DIR --sizes 1000,10000 --adds 2000 --queries 60

Runs where the peers are installed, because it needs numpy. A vector is the sum of a topic, a place within the topic in
few dimensions, and a little noise. Text embeddings have such a structure too, and no index of neighbours works without
one. Words follow a power law.
"""

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from words import questions, random_text

DIMENSIONS, TOPICS, INNER = 1536, 200, 48
NEAREST = 20
COMMON, RARE, RARE_EVERY = "fact", "decision", 20


class Material:
    """Rows are numbered, and a tenant has a range of them. Rows after the last range are added to the first tenant."""

    def __init__(self, directory: Path) -> None:
        stored = json.loads((directory / "material.json").read_text())
        self.tenants: dict[str, tuple[int, int]] = {name: (first, last) for name, (first, last) in stored["tenants"]}
        self.texts: list[str] = stored["texts"]
        self.categories: list[str] = stored["categories"]
        self.questions: list[str] = stored["questions"]
        self.vectors = _read_vectors(directory / "vectors.f32")
        self.question_vectors = _read_vectors(directory / "questions.f32")
        self.vector_of = {text: self.vectors[number] for number, text in enumerate(self.texts)}
        self.vector_of |= {text: self.question_vectors[number] for number, text in enumerate(self.questions)}

    def tenant_of(self, number: int) -> str:
        owners = (name for name, (first, last) in self.tenants.items() if first <= number < last)
        return next(owners, next(iter(self.tenants)))


def _read_vectors(path: Path) -> Any:
    return np.memmap(path, dtype="<f4", mode="r").reshape(-1, DIMENSIONS)


def write(directory: Path, tenants: list[tuple[str, int]], adds: int, queries: int) -> None:
    total = sum(size for _, size in tenants) + adds
    draw = np.random.default_rng(5)
    topics = draw.standard_normal((TOPICS, DIMENSIONS), dtype=np.float32)
    inner = draw.standard_normal((INNER, DIMENSIONS), dtype=np.float32)
    with (directory / "vectors.f32").open("wb") as file:
        for first in range(0, total, 10_000):
            file.write(vectors(draw, topics, inner, min(10_000, total - first)).tobytes())
    question_vectors = vectors(draw, topics, inner, queries)
    (directory / "questions.f32").write_bytes(question_vectors.tobytes())
    ends = np.cumsum([0, *(size for _, size in tenants)]).tolist()
    ranges = [(name, (ends[n], ends[n + 1])) for n, (name, _) in enumerate(tenants)]
    material = {"tenants": ranges, "texts": texts(total), "categories": [category(number) for number in range(total)]}
    (directory / "material.json").write_text(json.dumps(material | {"questions": questions(queries)}))
    stored = _read_vectors(directory / "vectors.f32")
    exact = {name: exact_answers(stored, question_vectors, range(*numbers)) for name, numbers in ranges}
    (directory / "exact.json").write_text(json.dumps(exact))


def exact_answers(stored: Any, question_vectors: Any, numbers: range) -> dict[str, list[list[int]]]:
    """The nearest among all rows of a tenant, and among those of the rare category."""
    rare = [number for number in numbers if category(number) == RARE]
    return {"": nearest(stored, question_vectors, numbers), RARE: nearest(stored, question_vectors, rare)}


def vectors(draw: np.random.Generator, topics: Any, inner: Any, number: int) -> Any:
    """Vectors of length 1, so that cosine, inner product and Euclidean distance give the same order."""
    topic = (draw.random(number) ** 2 * TOPICS).astype(int)
    place = draw.standard_normal((number, INNER), dtype=np.float32) / np.float32(np.sqrt(INNER))
    noise = draw.standard_normal((number, DIMENSIONS), dtype=np.float32) * np.float32(0.2)
    sums = topics[topic] + place @ inner + noise
    return (sums / np.linalg.norm(sums, axis=1, keepdims=True)).astype("<f4")


def nearest(stored: Any, question_vectors: Any, numbers: Sequence[int]) -> list[list[int]]:
    """The nearest of these rows to each question, by exact cosine."""
    order = np.argsort(-(question_vectors @ stored[numbers].T), axis=1, kind="stable")[:, :NEAREST]
    return [[numbers[place] for place in row] for row in order]


def category(number: int) -> str:
    return COMMON if number % RARE_EVERY else RARE


def texts(number: int) -> list[str]:
    """All different, because vectors are looked up by their text."""
    rnd = random.Random(11)
    unique: dict[str, None] = {}
    while len(unique) < number:
        unique[random_text(rnd, rnd.randint(10, 16))] = None
    return list(unique)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", required=True)
    parser.add_argument("--adds", type=int, required=True)
    parser.add_argument("--queries", type=int, required=True)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    tenants = [(f"tenant-{size}", size) for size in sizes]
    write(options.out, tenants, options.adds, options.queries)


if __name__ == "__main__":
    main()
