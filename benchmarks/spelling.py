"""How long does it take to see that words are known, and to correct those that are not?

    .venv/bin/python benchmarks/spelling.py [--sizes 1000,10000,100000] [--times 40]

The memories are those of `search.py`, without vectors. A query has words of the newest memories (`known`), such words
with two letters swapped (`swapped`), or random letters (`nonsense`); `words` is how many.
"""

import argparse
import random
from typing import Any

import search
from bench import fresh_console, median_ms, print_table, write_result


def newest_words(scope: Any) -> list[str]:
    from memories.models import Chunk

    contents = Chunk.objects.filter(instance=scope.instance).order_by("-id").values_list("content", flat=True)[:300]
    return [word for content in contents for word in content.split()]


def swapped(rnd: random.Random, word: str) -> str:
    at = rnd.randrange(2, len(word) - 1)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def nonsense(rnd: random.Random) -> str:
    return "".join(rnd.choices("qrstuvwxyz", k=8))


def questions(rnd: random.Random, words: list[str], times: int) -> dict[tuple[str, int], list[str]]:
    def texts(number: int, word: Any) -> list[str]:
        return [" ".join(word() for _ in range(number)) for _ in range(times + 1)]

    return {
        ("known", 6): texts(6, lambda: rnd.choice(words)),
        ("swapped", 1): texts(1, lambda: swapped(rnd, rnd.choice(words))),
        ("swapped", 3): texts(3, lambda: swapped(rnd, rnd.choice(words))),
        ("nonsense", 6): texts(6, lambda: nonsense(rnd)),
    }


def measure(scope: Any, texts: list[str], times: int) -> dict[str, float]:
    from memories.search.query import read_query
    from memories.search.spelling import similar_words

    for text in texts[:6]:  # until the connection keeps its plans
        similar_words(scope, read_query(text))
    queries = iter([read_query(text) for text in texts])
    p50, p95 = median_ms(lambda: similar_words(scope, next(queries)), times)
    return {"ms": p50, "p95_ms": p95}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--times", type=int, default=40)
    options = parser.parse_args()
    fresh_console()
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(search.WORD)
    rows: list[dict[str, Any]] = []
    for size in map(int, options.sizes.split(",")):
        scope, rnd = search.fill(size, has_vectors=False), random.Random(3)
        for (kind, number), texts in questions(rnd, newest_words(scope), options.times).items():
            rows.append({"memories": size, "query": kind, "words": number, **measure(scope, texts, options.times)})
    print_table(["memories", "query", "words", "ms", "p95"], [list(row.values()) for row in rows])
    write_result("spelling", rows, times=options.times)


if __name__ == "__main__":
    main()
