"""Which known words an unknown word resembles, and how much. Pure functions."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain

from memories.search.accents import bare

# The least similarity of a correction; the threshold of the operator `%` of pg_trgm.
ALIKE = 0.3
# The least similarity of a suggestion, when other words of the query were found.
ALIKE_ENOUGH = 0.55
# How many letters a correction may be longer or shorter.
STRETCH = 3
# The shortest part by which a longer word is recognised. Fewer digits are enough: they rarely agree by chance.
BEGINNING, BEGINNING_DIGITS = 4, 3
INSIDE, INSIDE_DIGITS = 5, 4
MOST_CONTAINING = 5
# A number of this many digits can be a telephone number.
TELEPHONE = 7
# What Hebrew and Arabic write together with the word that follows: and, that, the, in, to, from, like.
PREFIXES = (
    (re.compile("[א-ת]"), "[ושהבלמכ]{1,3}"),
    (re.compile("[ء-ي]"), "[وف]?(?:[بك]?ال|لل|[بكل])|[وف]"),
)
LONGEST_PREFIX, BEHIND_PREFIX = 4, 3
NUMBER = re.compile(r"\d[\d.]*")


class KnownStems:
    """The stems in a text of tsvectors."""

    def __init__(self, tsvectors: str) -> None:
        self.counts = Counter(tsvectors.replace("'", "").split())
        self.lines = "\n".join(["", *self.counts, ""])

    @cached_property
    def accented(self) -> Mapping[str, Sequence[str]]:
        """The stems that have accents, by what is left without accents."""
        found: dict[str, list[str]] = {}
        for stem in () if self.lines.isascii() else self.counts:
            if not stem.isascii():
                found.setdefault(bare(stem), []).append(stem)
        return found

    def most_common(self, stems: Iterable[str]) -> list[str]:
        return sorted(stems, key=lambda stem: (-self.counts[stem], stem))

    def like(self, text: str) -> list[str]:
        """The stems that share its first letter or its next two, or that swap its first two letters."""
        first, second, after = re.escape(text[0]), re.escape(text[1]), re.escape(text[1:3])
        return re.findall(rf"\n({first}.*|.{after}.*|{second}{first}.*)", self.lines)


class UnknownWord:
    """A word of the query, as it was typed and as the index would stem it."""

    def __init__(self, text: str, stems: Sequence[str], begins_one: bool = False) -> None:
        self.text = text
        self.numbers = NUMBER.findall(text)
        self.is_beginning = begins_one and len(text) >= (BEGINNING_DIGITS if self.numbers else BEGINNING)
        self.lengths = range(max(len(stems[0]) - STRETCH, 3), len(text) + STRETCH + 1)
        self.stems = {text, *(stem for stem in stems[:1] if len(stem) + STRETCH >= len(text))}
        if text.isdigit() and len(text) >= TELEPHONE:  # written with a leading zero or with a country code
            self.stems.add(text.lstrip("0"))
        self.spellings = {text, stems[0]}
        self.trigrams = [trigrams(spelling) for spelling in self.spellings]
        shared = {each.strip() for spelling in self.trigrams for each in spelling} - {text[0], stems[0][0]}
        # Swapping the two letters in the middle of four leaves no pair of letters as it was.
        shared |= {f"{word[0]}{word[2]}{word[1]}{word[3]}" for word in self.spellings if len(word) == 4}
        self.shares = re.compile("|".join(map(re.escape, shared))).search

    def meant(self, known: KnownStems) -> list[str]:
        """The stems that were probably meant, by the first of these ways that finds any."""
        return (
            self.unaccented(known)
            or self.unaccented_beginning(known)
            or self.prefixed(known)
            or self.containing(known)
            or self.most_alike(known)
            or self.contained(known)
        )

    def containing(self, known: KnownStems) -> list[str]:
        """The stems that contain it, the most common ones first."""
        least = INSIDE_DIGITS if self.numbers else INSIDE
        own = [rf"{re.escape(stem)}.*" for stem in self.stems if len(stem) >= least and stem in known.lines]
        # As the end of a longer word, it may have lost its own ending to the stemmer; a number has none.
        cut_off = "" if self.numbers or len(self.text) <= least else self.text[:-1]
        own += [re.escape(cut_off)] if cut_off and f"{cut_off}\n" in known.lines else []
        found = re.findall(rf"^(.*(?:{'|'.join(own)}))$", known.lines, re.MULTILINE) if own else []
        return known.most_common(found)[:MOST_CONTAINING]

    def contained(self, known: KnownStems) -> list[str]:
        """The longest stem that makes up at least half of it."""
        size, least = len(self.text), max(INSIDE, len(self.text) // 2)
        parts = (
            self.text[at : at + length] for length in range(size, least - 1, -1) for at in range(size - length + 1)
        )
        longest = next((part for part in parts if part in known.counts), None)
        return [longest] if longest else []

    def unaccented(self, known: KnownStems) -> list[str]:
        """The most common stem that differs from it only by accents: people leave them out when they type."""
        typed = [spelling for spelling in self.spellings if spelling.isascii()]
        found = {stem for spelling in typed for stem in known.accented.get(bare(spelling), ())}
        return known.most_common(found)[:1]

    def unaccented_beginning(self, known: KnownStems) -> list[str]:
        """The stems that begin with it if accents are ignored, the most common ones first."""
        if len(self.text) < BEGINNING or not self.text.isascii():
            return []
        beginning = bare(self.text)
        longer = (stems for plain, stems in known.accented.items() if plain.startswith(beginning))
        return known.most_common(chain(*longer))[:MOST_CONTAINING]

    def prefixed(self, known: KnownStems) -> list[str]:
        """The stems that are the same word with other prefixes, in Hebrew and Arabic."""
        prefix = next((prefix for letter, prefix in PREFIXES if letter.match(self.text)), None)
        if prefix is None:
            return []
        roots = [
            spelling[length:]
            for length in range(LONGEST_PREFIX + 1)
            for spelling in sorted(self.spellings)
            if len(spelling) - length >= BEHIND_PREFIX and re.fullmatch(f"(?:{prefix})?", spelling[:length])
        ]
        found = (re.findall(rf"^((?:{prefix})?{re.escape(root)})$", known.lines, re.MULTILINE) for root in roots)
        return known.most_common(next(filter(None, found), []))[:MOST_CONTAINING]

    def most_alike(self, known: KnownStems) -> list[str]:
        """The stem that it resembles most. Of several, the longest, then the most common."""
        alike = [(-self.nearness(stem), -len(stem), -known.counts[stem], stem) for stem in self.near(known)]
        return [min(alike)[3]] if alike and -min(alike)[0] >= ALIKE else []

    def near(self, known: KnownStems) -> list[str]:
        """The stems worth comparing. This selection is much cheaper than comparing all of them."""
        alike = {stem for spelling in self.spellings if len(spelling) > 1 for stem in known.like(spelling)}
        lengths, shares = self.lengths, self.shares
        likely = [stem for stem in alike if len(stem) in lengths and shares(stem)]
        # A number is never corrected to another one: 1985 is no misspelt 1984.
        return [stem for stem in likely if NUMBER.findall(stem) == self.numbers]

    def nearness(self, stem: str) -> float:
        """A typing slip is nearest, even if a short word has few trigrams in common with it."""
        if any(is_slip(spelling, stem) for spelling in self.spellings):
            return 1.0
        its = trigrams(stem)
        return max(similarity(its, own) for own in self.trigrams)


def is_slip(one: str, other: str) -> bool:
    """Whether one letter is wrong, missing or too many, or two neighbours are swapped."""
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1 or len(short) < 4:
        return False
    same = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(long) > len(short):
        return short[same:] == long[same + 1 :]
    left, right = short[same:], long[same:]
    return left[1:] == right[1:] or (left[2:] == right[2:] and left[:2] == right[1::-1])


def looks_like(one: str, other: str) -> bool:
    """Whether two words are similar enough to ask “Did you mean …?”. Words of other languages often are a little."""
    return is_slip(one, other) or similarity(trigrams(one), trigrams(other)) >= ALIKE_ENOUGH


def similarity(one: set[str], other: set[str]) -> float:
    """The share of trigrams that both have, as pg_trgm computes it."""
    return len(one & other) / len(one | other)


def trigrams(word: str) -> set[str]:
    padded = f"  {word} "
    return {padded[n : n + 3] for n in range(len(padded) - 2)}
