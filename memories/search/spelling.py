"""Words nobody wrote, and what was probably meant: words that begin like it, that contain it, or that look like it.

Whether words begin like it is seen in the index. Otherwise known words are those of the newest chunks that may be read,
fetched as one text. What looks like a word of the query is found here, in a tenth of the time PostgreSQL needs to count
these words.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any

from django.db import connection

from accounts.access import Scope
from memories.chunking import IN_WORD
from memories.search.accents import bare, typed_otherwise
from memories.search.query import LONGEST_WORD, Phrase, Query
from memories.search.words_sql import quoted

MOST_WORDS = 8
# So many chunks, the newest that may be read, until they have so many words; not looked for any longer than that.
SAMPLE = 1_000
SAMPLED_WORDS = 20_000
LOOKED_AT = 4 * SAMPLE
# As similar as `%` of pg_trgm wants words to be.
ALIKE = 0.3
# As similar as they have to be where other words are found.
ALIKE_ENOUGH = 0.55
# How far what was meant may be longer or shorter.
STRETCH = 3
# A word is recognised by so many letters at its beginning or inside of it; digits are rarely the same by chance.
BEGINNING, BEGINNING_DIGITS = 4, 3
INSIDE, INSIDE_DIGITS = 5, 4
MOST_CONTAINING = 5
# So many digits may be a telephone number.
TELEPHONE = 7
# What Hebrew and Arabic write as one with the word behind it: and, that, the, in, to, from, like.
PREFIXES = (
    (re.compile("[א-ת]"), "[ושהבלמכ]{1,3}"),
    (re.compile("[ء-ي]"), "[وف]?(?:[بك]?ال|لل|[بكل])|[وف]"),
)
LONGEST_PREFIX, BEHIND_PREFIX = 4, 3
SAID = re.compile(rf"{IN_WORD}{{3,}}")
NUMBER = re.compile(r"\d[\d.]*")
HALVES = re.compile(rf"(?:(?!\d){IN_WORD})+|\d+")


@dataclass(frozen=True, slots=True)
class Meant:
    """What to look for instead of words that are nowhere."""

    replaced: Mapping[str, Sequence[str]] = field(default_factory=dict)
    begun: Sequence[str] = ()
    """These are the beginnings of words."""

    @property
    def shown(self) -> dict[str, str]:
        return {word: ", ".join(meant) for word, meant in self.replaced.items()} | {w: f"{w}…" for w in self.begun}


class Known:
    """The words of the newest chunks, as PostgreSQL writes them: in quotes."""

    def __init__(self, sample: str) -> None:
        self.stems = Counter(sample.replace("'", "").split())
        self.lines = "\n".join(["", *self.stems, ""])

    @cached_property
    def accented(self) -> Mapping[str, Sequence[str]]:
        """The stems that have accents, by what is left without them, however their dots are written."""
        found: dict[str, list[str]] = {}
        for stem in () if self.lines.isascii() else self.stems:
            if not stem.isascii():
                found.setdefault(bare(stem), []).append(stem)
        return found

    def most_common(self, stems: Iterable[str]) -> list[str]:
        return sorted(stems, key=lambda stem: (-self.stems[stem], stem))

    def like(self, text: str) -> list[str]:
        """The stems that begin or go on like it, or begin with its second letter and then its first."""
        first, second, after = re.escape(text[0]), re.escape(text[1]), re.escape(text[1:3])
        return re.findall(rf"\n({first}.*|.{after}.*|{second}{first}.*)", self.lines)


class Word:
    """A word of the query, written as it is and as the index would know it."""

    def __init__(self, text: str, cut: Sequence[str], begins_one: bool = False) -> None:
        self.text = text
        self.numbers = NUMBER.findall(text)
        self.is_begun = begins_one and len(text) >= (BEGINNING_DIGITS if self.numbers else BEGINNING)
        self.lengths = range(max(len(cut[0]) - STRETCH, 3), len(text) + STRETCH + 1)
        self.stems = {text, *(stem for stem in cut[:1] if len(stem) + STRETCH >= len(text))}
        if text.isdigit() and len(text) >= TELEPHONE:  # with a zero at home, with the country's number abroad
            self.stems.add(text.lstrip("0"))
        self.written = {text, cut[0]}
        self.spellings = [trigrams(spelling) for spelling in self.written]
        shared = {each.strip() for spelling in self.spellings for each in spelling} - {text[0], cut[0][0]}
        self.shares = re.compile("|".join(map(re.escape, shared))).search

    def containing(self, known: Known) -> list[str]:
        """The stems it is part of, the most common ones first."""
        least = INSIDE_DIGITS if self.numbers else INSIDE
        own = [rf"{re.escape(stem)}.*" for stem in self.stems if len(stem) >= least and stem in known.lines]
        # At the end of a longer word its own ending may have been cut off; a number has none.
        cut_off = "" if self.numbers or len(self.text) <= least else self.text[:-1]
        own += [re.escape(cut_off)] if cut_off and f"{cut_off}\n" in known.lines else []
        found = re.findall(rf"^(.*(?:{'|'.join(own)}))$", known.lines, re.MULTILINE) if own else []
        return known.most_common(found)[:MOST_CONTAINING]

    def contained(self, known: Known) -> list[str]:
        """The longest stem that is most of it."""
        size, least = len(self.text), max(INSIDE, len(self.text) // 2)
        parts = (
            self.text[at : at + length] for length in range(size, least - 1, -1) for at in range(size - length + 1)
        )
        longest = next((part for part in parts if part in known.stems), None)
        return [longest] if longest else []

    def unaccented(self, known: Known) -> list[str]:
        """The most common stem that it is without the accents; what is typed without any is mostly meant with them."""
        typed = [spelling for spelling in self.written if spelling.isascii()]
        found = {stem for spelling in typed for stem in known.accented.get(bare(spelling), ())}
        return known.most_common(found)[:1]

    def unaccented_beginning(self, known: Known) -> list[str]:
        """The stems that begin with it but for their accents, the most common ones first."""
        if len(self.text) < BEGINNING or not self.text.isascii():
            return []
        beginning = bare(self.text)
        begun = (stems for plain, stems in known.accented.items() if plain.startswith(beginning))
        return known.most_common(chain(*begun))[:MOST_CONTAINING]

    def prefixed(self, known: Known) -> list[str]:
        """The same word with something else before it that is written as one with it."""
        prefix = next((prefix for letter, prefix in PREFIXES if letter.match(self.text)), None)
        if prefix is None:
            return []
        roots = [
            spelling[length:]
            for length in range(LONGEST_PREFIX + 1)
            for spelling in sorted(self.written)
            if len(spelling) - length >= BEHIND_PREFIX and re.fullmatch(f"(?:{prefix})?", spelling[:length])
        ]
        found = (re.findall(rf"^((?:{prefix})?{re.escape(root)})$", known.lines, re.MULTILINE) for root in roots)
        return known.most_common(next(filter(None, found), []))[:MOST_CONTAINING]

    def near(self, known: Known) -> list[str]:
        """Those worth comparing, which takes longer than all of this: they begin or go on like it."""
        alike = {stem for spelling in self.written if len(spelling) > 1 for stem in known.like(spelling)}
        lengths, shares = self.lengths, self.shares
        likely = [stem for stem in alike if len(stem) in lengths and shares(stem)]
        # 1985 is no slip of the fingers for 1984: another number is something else.
        return [stem for stem in likely if NUMBER.findall(stem) == self.numbers]

    def nearness(self, stem: str) -> float:
        """A slip of the fingers is nearer than anything else, however few trigrams of a short word it leaves."""
        if any(is_slip(spelling, stem) for spelling in self.written):
            return 1.0
        return self.likeness(stem)

    def likeness(self, stem: str) -> float:
        """The share of trigrams both have, as pg_trgm counts them."""
        its = trigrams(stem)
        return max(len(its & own) / len(its | own) for own in self.spellings)


# What its reader cannot read is nowhere. A subquery for one value: asked of each chunk, never joined with all memories.
READABLE = """(
    SELECT true FROM memories_memory m
    WHERE m.instance_id = %(instance)s::uuid AND m.id = c.memory_id AND m.listed
      AND (m.expires_at IS NULL OR m.expires_at > statement_timestamp())
      AND (%(reader)s::text IS NULL OR m.visibility <> 'private' OR m.owner = %(reader)s::text)
)"""

# A common word is seen among the newest chunks at once, where the index would list all that say it; of a rare one the
# list is short. Arrays are selected, because a plan for unknown arrays is only kept if known ones look no cheaper.
NOWHERE = f"""
SELECT word, cut, (
    SELECT true FROM memories_chunk c
    WHERE c.instance_id = %(instance)s::uuid AND c.live AND c.words @@ ({quoted("word")} || ':*')::tsquery
      AND {READABLE}
    LIMIT 1
) IS NOT NULL
FROM unnest((SELECT %(words)s::text[])) AS word,
     LATERAL (SELECT tsvector_to_array(memories_words(%(language)s::text::regconfig, '', word, '')) AS cut) AS index,
     LATERAL (SELECT string_agg({quoted("piece")}, ' | ')::tsquery AS any_of FROM unnest(cut) AS piece) AS wanted
WHERE cardinality(cut) > 0 AND coalesce((
    SELECT true FROM (
        SELECT memory_id, words FROM memories_chunk
        WHERE instance_id = %(instance)s::uuid AND live ORDER BY id DESC LIMIT 100
    ) AS c
    WHERE c.words @@ any_of AND {READABLE}
    LIMIT 1
), (
    SELECT true FROM memories_chunk c
    WHERE c.instance_id = %(instance)s::uuid AND c.live AND c.words @@ any_of AND {READABLE}
    LIMIT 1
)) IS NULL
"""

SAMPLED = f"""
SELECT coalesce(string_agg(strip(words)::text, ' '), '')
FROM (
    SELECT words, sum(length) OVER (ORDER BY id DESC) - length AS words_before
    FROM (
        SELECT c.id, c.words, c.length
        FROM (
            SELECT id, memory_id, words, length FROM memories_chunk
            WHERE instance_id = %(instance)s::uuid AND live ORDER BY id DESC LIMIT {LOOKED_AT}
        ) AS c
        WHERE {READABLE} ORDER BY c.id DESC LIMIT {SAMPLE}
    ) AS readable
) AS newest
WHERE words_before < {SAMPLED_WORDS}
"""

# How these words are written: the index knows their stems alone.
SPELT = f"""
SELECT word, coalesce((
    SELECT token
    FROM (
        SELECT c.who, c.content, c.about FROM memories_chunk c
        WHERE c.instance_id = %(instance)s::uuid AND c.live
          AND c.words @@ array_to_tsvector(ARRAY[stem])::text::tsquery AND {READABLE}
        LIMIT 3
    ) AS examples, ts_parse('default', lower(concat_ws(' ', who, content, about)))
    WHERE (left(token, 1) = left(stem, 1) OR substr(token, 2, 2) = substr(stem, 2, 2) OR strpos(token, stem) > 1)
      AND stem = ANY(tsvector_to_array(to_tsvector(%(language)s::text::regconfig, memories_folded(token))))
    ORDER BY similarity(token, word) DESC, token
    LIMIT 1
), stem)
FROM unnest((SELECT %(words)s::text[]), (SELECT %(stems)s::text[])) AS meant (word, stem)
"""


def similar_words(scope: Scope, query: Query) -> Meant:
    """For each word that is nowhere, those somewhere that begin with it, contain it or look like it."""
    said = dict.fromkeys(SAID.findall(query.text.lower()))
    texts = [text for text in said if len(text) <= LONGEST_WORD][:MOST_WORDS]
    halves = {text: found for text in texts if len(found := HALVES.findall(text)) > 1}
    plain = {text: typed_otherwise(text) for text in texts}
    asked = [*texts, *chain(*halves.values(), *plain.values())]
    nowhere = {row[0]: Word(*row) for row in _rows(scope, NOWHERE, words=asked)} if asked else {}
    begun = [text for text in texts if text in nowhere and nowhere[text].is_begun]
    # "inv20311" where INV-20311 was written.
    known = {
        text: [" ".join(found)] for text, found in halves.items() if text in nowhere and not nowhere.keys() & found
    }
    # "Müller" where Mueller was written.
    known |= {
        text: found
        for text in texts
        if text in nowhere.keys() - begun and (found := [one for one in plain[text] if one not in nowhere])
    }
    left = [nowhere[text] for text in texts if text in nowhere.keys() - begun - known.keys()]
    return Meant(known | _replaced(scope, left), begun)


def _replaced(scope: Scope, words: Sequence[Word]) -> dict[str, list[str]]:
    """By how they are written: the index knows stems alone."""
    if not words:
        return {}
    ((sample,),) = _rows(scope, SAMPLED)
    known = Known(sample)
    alike = _alike(words, known)
    meant = {
        word: word.unaccented(known)
        or word.unaccented_beginning(known)
        or word.prefixed(known)
        or word.containing(known)
        or alike.get(word.text)
        or word.contained(known)
        for word in words
    }
    pairs = [(word.text, stem) for word, stems in meant.items() for stem in stems]
    spelt: dict[str, list[str]] = {}
    if pairs:
        for word, spelling in _rows(scope, SPELT, words=[word for word, _ in pairs], stems=[stem for _, stem in pairs]):
            spelt.setdefault(word, []).append(spelling)
    return spelt


def _rows(scope: Scope, statement: str, **named: Any) -> list[tuple[Any, ...]]:
    instance = scope.instance
    named |= {"instance": instance.id, "language": instance.language, "reader": scope.private_memories_of}
    with connection.cursor() as cursor:
        cursor.execute(statement, named)
        return list(cursor.fetchall())


def _alike(words: Sequence[Word], known: Known) -> dict[str, list[str]]:
    """The known stem that each word is most like, the longer or the more common one of two."""
    meant = {}
    for word in words:
        alike = [(-word.nearness(stem), -len(stem), -known.stems[stem], stem) for stem in word.near(known)]
        if alike and -min(alike)[0] >= ALIKE:
            meant[word.text] = [min(alike)[3]]
    return meant


def is_slip(one: str, other: str) -> bool:
    """Whether one letter is another, missing or too much, or two have changed places."""
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1 or len(short) < 4:
        return False
    same = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(long) > len(short):
        return short[same:] == long[same + 1 :]
    left, right = short[same:], long[same:]
    return left[1:] == right[1:] or (left[2:] == right[2:] and left[:2] == right[1::-1])


def looks_like(one: str, other: str) -> bool:
    """Whether one is so much like the other that it is worth asking; words of another language often are a little."""
    first, second = trigrams(one), trigrams(other)
    return is_slip(one, other) or len(first & second) / len(first | second) >= ALIKE_ENOUGH


def trigrams(word: str) -> set[str]:
    padded = f"  {word} "
    return {padded[n : n + 3] for n in range(len(padded) - 2)}


def corrected_query(query: Query, meant: Meant) -> Query:
    instead = {word: " ".join(found) for word, found in meant.replaced.items()}
    words = [instead.get(word.lower(), word) for word in query.text.split()]
    required = tuple(tuple(other for phrase in group for other in _meant(phrase, meant)) for group in query.required)
    text = " ".join([*words, *instead.values()])
    return replace(query, text=text, required=required, prefix=" ".join(meant.begun))


def _meant(phrase: Phrase, meant: Meant) -> list[Phrase]:
    """A phrase as it is, and in each of the words that may have been meant; beginnings need not stand in a row."""
    begun = [word for word in SAID.findall(phrase.words.lower()) if word in meant.begun]
    pieces = (*phrase.pieces, *(f"'{word}':*" for word in begun))
    instead = {**meant.replaced, **{word: [""] for word in begun}}
    most = max(map(len, instead.values()), default=0)

    def other(choice: int) -> str:
        return SAID.sub(lambda word: _choice(instead.get(word[0], [word[0]]), choice), phrase.words.lower())

    return [phrase, *(Phrase(words.strip(), pieces) for words in dict.fromkeys(map(other, range(most))))]


def _choice(words: Sequence[str], number: int) -> str:
    return words[min(number, len(words) - 1)]
