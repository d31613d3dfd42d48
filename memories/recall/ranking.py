"""The score of a search hit for a prompt: its rank times factors for importance, pin and recency.

Every factor is bounded, so that none of them alone can push the best hit out of a block of eight.
"""

from dataclasses import dataclass
from datetime import datetime

from memories.vocabulary import Role

# The eighth hit counts about half as much as the first.
HALF_AT = 8
LEAST_IMPORTANT, MOST_IMPORTANT = 0.9, 1.1
PINNED = 1.15
OLDEST = 0.6
EVERGREEN = frozenset({Role.IDENTITY, Role.LESSON})


@dataclass(frozen=True, slots=True)
class Multipliers:
    importance: float
    pin: float
    recency: float

    @property
    def product(self) -> float:
        return self.importance * self.pin * self.recency

    @property
    def without_recency(self) -> float:
        return self.importance * self.pin


def relevance(place: int) -> float:
    """From 1 for the first hit downwards. By rank, because the scores of merged lists differ too little."""
    return HALF_AT / (HALF_AT - 1 + place)


def multipliers(*, importance: int, pinned: bool, role: str, age_days: int, half_life_days: float) -> Multipliers:
    steepness = (MOST_IMPORTANT - LEAST_IMPORTANT) / 9
    decay = 1.0 if role in EVERGREEN else 0.5 ** (age_days / half_life_days)
    return Multipliers(
        importance=round(LEAST_IMPORTANT + (importance - 1) * steepness, 4),
        pin=PINNED if pinned else 1.0,
        recency=round(OLDEST + (1 - OLDEST) * decay, 4),
    )


def age_in_days(*moments: datetime, now: datetime) -> int:
    """Whole days since the latest of these moments, so that the same question gets the same block all day."""
    return max(0, (now - max(moments)).days)
