"""Quality of a ranked list whose correct entries are known: Recall@k, reciprocal rank and nDCG@k."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Quality:
    recall: float
    reciprocal_rank: float
    ndcg: float


def quality(found: Sequence[UUID], expected: Collection[UUID], *, k: int) -> Quality:
    ranks = [rank for rank, id in enumerate(found[:k], start=1) if id in expected]
    ideal = _gain(range(1, min(len(expected), k) + 1))
    return Quality(
        recall=len(ranks) / len(expected),
        reciprocal_rank=1 / ranks[0] if ranks else 0.0,
        ndcg=_gain(ranks) / ideal,
    )


def _gain(ranks: Collection[int]) -> float:
    return sum(1 / math.log2(rank + 1) for rank in ranks)


def mean(qualities: Sequence[Quality]) -> Quality | None:
    """The average, or None of an empty list."""
    if not qualities:
        return None
    n = len(qualities)
    return Quality(
        recall=sum(one.recall for one in qualities) / n,
        reciprocal_rank=sum(one.reciprocal_rank for one in qualities) / n,
        ndcg=sum(one.ndcg for one in qualities) / n,
    )
