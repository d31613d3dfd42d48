"""Maximal Marginal Relevance: a memory counts less the more it resembles one that is already chosen."""

from collections.abc import Sequence

from memories.chunking import RUN, WORD, pieces


def words_of(text: str) -> frozenset[str]:
    folded = text.casefold()
    runs = (piece for run in RUN.findall(folded) for piece in pieces(run))
    return frozenset([*WORD.findall(folded), *runs])


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of common words, from 0 to 1."""
    together = len(one | other)
    return len(one & other) / together if together else 0.0


def choose(scores: Sequence[float], words: Sequence[frozenset[str]], *, limit: int, balance: float) -> list[int]:
    """The indexes of the chosen, in order. `balance` 1 considers only scores, 0 only differences."""
    left = list(range(len(scores)))
    nearest = [0.0] * len(scores)
    chosen: list[int] = []
    while left and len(chosen) < limit:
        best = max(left, key=lambda n: (balance * scores[n] - (1 - balance) * nearest[n], -n))
        chosen.append(best)
        left.remove(best)
        for n in left:
            nearest[n] = max(nearest[n], jaccard(words[n], words[best]))
    return chosen


def most_alike(n: int, chosen: Sequence[int], words: Sequence[frozenset[str]]) -> tuple[int, float]:
    """Which of the chosen `n` resembles most, and how much."""
    alike = max(chosen, key=lambda other: jaccard(words[n], words[other]))
    return alike, jaccard(words[n], words[alike])
