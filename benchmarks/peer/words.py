"""Generated words, texts and questions, the same for the console and for peers.

The benchmarks import it as `peer.words`, and what runs where the peers are installed as `words`.
"""

import random
from hashlib import md5


def word(number: int) -> str:
    """Seven letters, as different from each other as words are. `bench_word` in `search.py` makes the same ones."""
    digest = md5(str(number).encode(), usedforsecurity=False).hexdigest()
    return digest[:7].translate(str.maketrans("0123456789", "ghijklmnop"))


def random_word(rnd: random.Random) -> str:
    """By a power law: words with a low number are frequent."""
    return word(int(rnd.random() ** 3 * 20_000))


def random_text(rnd: random.Random, words: int) -> str:
    return " ".join(random_word(rnd) for _ in range(words))


def questions(number: int) -> list[str]:
    """Of every five questions two have words by the power law, two only frequent words, and one only rare words."""
    rnd = random.Random(7)
    kinds = [lambda: random_word(rnd), lambda: word(rnd.randrange(30)), lambda: word(rnd.randrange(15_000, 20_000))]
    return [" ".join(kinds[n % 5 // 2]() for _ in range(6)) for n in range(number)]
