"""What every system is given: the same texts, the same vectors, the same questions, and the right answers.

    python benchmarks/peer/material.py --out DIR --sizes 1000,10000 --adds 2000 --queries 60

Runs where the peers are installed, for numpy. Vectors have structure: a topic, a place within it in few dimensions,
and a little noise, as text embeddings do; without it no index over neighbours works. Words follow a power law.
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
    """Rows have numbers; a tenant has the rows from one number to another. What comes after is added to the first."""

    def __init__(self, place: Path) -> None:
        known = json.loads((place / "material.json").read_text())
        self.tenants: dict[str, tuple[int, int]] = {name: (first, last) for name, (first, last) in known["tenants"]}
        self.texts: list[str] = known["texts"]
        self.categories: list[str] = known["categories"]
        self.questions: list[str] = known["questions"]
        self.vectors = _stored(place / "vectors.f32")
        self.question_vectors = _stored(place / "questions.f32")
        self.vector_of = {text: self.vectors[number] for number, text in enumerate(self.texts)}
        self.vector_of |= {text: self.question_vectors[number] for number, text in enumerate(self.questions)}

    def tenant_of(self, number: int) -> str:
        owners = (name for name, (first, last) in self.tenants.items() if first <= number < last)
        return next(owners, next(iter(self.tenants)))


def _stored(path: Path) -> Any:
    return np.memmap(path, dtype="<f4", mode="r").reshape(-1, DIMENSIONS)


def write(place: Path, tenants: list[tuple[str, int]], adds: int, asks: int) -> None:
    total = sum(size for _, size in tenants) + adds
    draw = np.random.default_rng(5)
    topics = draw.standard_normal((TOPICS, DIMENSIONS), dtype=np.float32)
    inner = draw.standard_normal((INNER, DIMENSIONS), dtype=np.float32)
    with (place / "vectors.f32").open("wb") as file:
        for first in range(0, total, 10_000):
            file.write(vectors(draw, topics, inner, min(10_000, total - first)).tobytes())
    asked = vectors(draw, topics, inner, asks)
    (place / "questions.f32").write_bytes(asked.tobytes())
    ends = np.cumsum([0, *(size for _, size in tenants)]).tolist()
    ranges = [(name, (ends[n], ends[n + 1])) for n, (name, _) in enumerate(tenants)]
    known = {"tenants": ranges, "texts": texts(total), "categories": [category(number) for number in range(total)]}
    (place / "material.json").write_text(json.dumps(known | {"questions": questions(asks)}))
    stored = _stored(place / "vectors.f32")
    exact = {name: exact_answers(stored, asked, range(*numbers)) for name, numbers in ranges}
    (place / "exact.json").write_text(json.dumps(exact))


def exact_answers(stored: Any, asked: Any, numbers: range) -> dict[str, list[list[int]]]:
    """Among all rows of a tenant, and among those of the rare category alone."""
    rare = [number for number in numbers if category(number) == RARE]
    return {"": nearest(stored, asked, numbers), RARE: nearest(stored, asked, rare)}


def vectors(draw: np.random.Generator, topics: Any, inner: Any, number: int) -> Any:
    """Of length 1, so that cosine, inner product and Euclid agree on who is near."""
    topic = (draw.random(number) ** 2 * TOPICS).astype(int)
    place = draw.standard_normal((number, INNER), dtype=np.float32) / np.float32(np.sqrt(INNER))
    noise = draw.standard_normal((number, DIMENSIONS), dtype=np.float32) * np.float32(0.2)
    made = topics[topic] + place @ inner + noise
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype("<f4")


def nearest(stored: Any, asked: Any, numbers: Sequence[int]) -> list[list[int]]:
    """The exact answer: by cosine, among these rows alone."""
    order = np.argsort(-(asked @ stored[numbers].T), axis=1, kind="stable")[:, :NEAREST]
    return [[numbers[place] for place in row] for row in order]


def category(number: int) -> str:
    return COMMON if number % RARE_EVERY else RARE


def texts(number: int) -> list[str]:
    """No two are the same: the text is how a vector is found again."""
    rnd = random.Random(11)
    made: dict[str, None] = {}
    while len(made) < number:
        made[random_text(rnd, rnd.randint(10, 16))] = None
    return list(made)


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
