"""The Memory screen while something is searched for: hits instead of a list, each with the reasons for its place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.http import HttpResponse, QueryDict
from django.utils.safestring import SafeString
from django_htmx.http import replace_url

from accounts.access import Scope
from accounts.pages import ConsoleRequest
from instances.models import Instance
from instances.warnings import way_to_key
from memories.audit import note_private_reads
from memories.filters import Filters
from memories.models import Memory, MemoryVersion
from memories.paging import Order, Page
from memories.search.hybrid import ONLY_EXCLUDES, Found, Hit, Results, search
from memories.search.likeness import looks_like
from memories.search.marking import snippets
from memories.search.query import MAX_CHARACTERS, read_query
from memories.search.spelling import SAID, similar_words
from memories.search.statement import CONTEXT_WEIGHT, PLAIN_DEPTH, VECTOR_DEPTH

RRF_K = 60
KEY_PROBLEMS = {"no_key", "no_azure", "unauthorized"}
BY_RANK = Order(())
MEANING = "Meaning"
LONG = 5
# What the numbers of an explanation are rounded to, before they are added up.
DIGITS = 5


class Part(NamedTuple):
    """What one ranked list adds to a hit's score."""

    title: str
    rank: int | None
    note: str
    formula: str
    amount: float

    @property
    def shown(self) -> str:
        return f"{self.amount:.{DIGITS}f}"


@dataclass(frozen=True, slots=True)
class ShownHit:
    snippet: SafeString
    version: MemoryVersion | None
    origin: Instance | None
    matched: list[str]
    parts: list[Part]

    @property
    def is_by_meaning(self) -> bool:
        """Its vector alone speaks for it."""
        return not self.matched and self.parts[0].title == MEANING and self.parts[0].rank is not None

    @property
    def score(self) -> str:
        """The sum of the rounded parts, so that what is shown adds up."""
        return f"{sum(part.amount for part in self.parts):.{DIGITS}f}"


@dataclass(frozen=True, slots=True)
class Search:
    """A search and its answer, as the page shows it."""

    text: str
    results: Results
    page: Page[Memory]
    hits: Mapping[UUID, ShownHit]
    settings_url: str
    suggested: str = ""
    """The same with words that are somewhere, when another word of it was found."""

    @property
    def is_hybrid(self) -> bool:
        return self.results.mode == "hybrid"

    @property
    def only_excludes(self) -> bool:
        return self.results.code == ONLY_EXCLUDES.code

    @property
    def is_by_meaning_alone(self) -> bool:
        return self.results.total > 0 and self.results.worded == 0

    @property
    def found(self) -> str:
        """How many there are. Something is always near: that says little, so those that say the words are counted."""
        total, worded = self.results.total, self.results.worded
        if self.only_excludes:
            return "Nothing to look for"
        if self.is_by_meaning_alone:
            return "Nothing says these words"
        more = f" with these words, {total - worded:,} more {'by meaning' if self.is_hybrid else 'beside them'}"
        return f"{worded:,} result{'' if worded == 1 else 's'}{more if worded < total else ''}"

    @property
    def asked(self) -> str:
        """What is suggested, for a sentence that ends with a question mark of its own."""
        return self.suggested.rstrip("?？؟ ")


def text_in(query: QueryDict) -> str:
    """What is searched for; empty when there is nothing to search for, as with blanks alone."""
    text = "".join(c for c in query.get("search", "") if c.isprintable() or c.isspace()).strip()[:MAX_CHARACTERS]
    read = read_query(text)
    return "" if read.is_empty and not read.only_excludes else text


def search_page(scope: Scope, text: str, filters: Filters, *, number: int, size: int) -> Search:
    """Page `number` of the hits; a number past the end is the last page.

    The last word counts from its beginning whether it is still being typed or not, so that a page that is reloaded or
    turned shows what was there before.
    """
    number = max(1, number)
    results = search(scope, text, filters, limit=size, offset=(number - 1) * size, typing=True)
    if not results.hits and number > 1:
        number = max(1, -(-results.total // size))
        results = search(scope, text, filters, limit=size, offset=(number - 1) * size, typing=True)
    note_private_reads(scope, [hit.memory for hit in results.hits])
    return Search(
        text=text,
        results=results,
        page=Page([hit.memory for hit in results.hits], number, size, results.total, BY_RANK),
        hits=_shown_hits(scope, results),
        settings_url=way_to_key(scope.instance) if results.code in KEY_PROBLEMS else "",
        suggested=_suggested(scope, text, results) if number == 1 and not results.corrected else "",
    )


def _suggested(scope: Scope, text: str, results: Results) -> str:
    """What was probably meant by words that nobody wrote. Short ones are alike by chance."""
    query = read_query(text)
    found = tuple({stem.rstrip("*")[:LONG] for hit in results.hits for stem in hit.found.matched})
    doubtful = [word for word in SAID.findall(text.lower()) if len(word) >= LONG and not word.startswith(found)]
    if query.has_conditions or not doubtful:
        return ""
    meant = {
        typed: words[0]
        for typed, words in similar_words(scope, query).replaced.items()
        if typed in doubtful and looks_like(typed, words[0])
    }
    return SAID.sub(lambda word: meant.get(word[0].lower(), word[0]), text) if meant else ""


def keep_history_short(request: ConsoleRequest, response: HttpResponse, typed: str = "search") -> HttpResponse:
    """The first letters typed are a step to go back over; the next ones, and the same address again, are not."""
    before, address = request.htmx.current_url_abs_path or "", request.get_full_path()
    is_typing_on = "X-Typing" in request.headers and typed in QueryDict(before.partition("?")[2])
    return replace_url(response, address) if is_typing_on or before == address else response


def _shown_hits(scope: Scope, results: Results) -> dict[UUID, ShownHit]:
    hits = zip(results.hits, snippets(scope.instance, results.hits), strict=True)
    return {hit.memory.id: _shown(hit, snippet, is_hybrid=results.mode == "hybrid") for hit, snippet in hits}


def _shown(hit: Hit, snippet: SafeString, *, is_hybrid: bool) -> ShownHit:
    found = hit.found
    parts = [_placed(found)] if hit.origin else _parts(found, is_hybrid=is_hybrid)
    return ShownHit(snippet, hit.version, hit.origin, _words(found.matched), parts)


def _placed(found: Found) -> Part:
    cosine = f"cosine {found.similarity:.4f}" if found.similarity is not None else "no vector to compare"
    words = f"word score {found.keyword_score:.2f}" if found.keyword_score is not None else "no word of the search"
    return Part("Shared", None, f"placed by {cosine}, {words}", "score of its place", round(found.final, DIGITS))


def _words(matched: Sequence[str]) -> list[str]:
    """The stems that were found; a beginning of a word only where its stem is not among them."""
    stems = [word for word in matched if not word.endswith("*")]
    begun = [word.removesuffix("*") for word in matched if word.endswith("*")]
    return stems + [f"{word}…" for word in begun if not any(word.startswith(stem) for stem in stems)]


def _parts(found: Found, *, is_hybrid: bool) -> list[Part]:
    far = f"not among the {VECTOR_DEPTH} nearest" if is_hybrid else "not searched for"
    cosine = f"cosine {found.similarity:.4f}" if found.similarity is not None else far
    words = f"score {found.keyword_score:.2f}" if found.keyword_score is not None else "no word of the search"
    return [
        Part(MEANING, found.vector_rank, cosine, _formula(found.vector_rank), round(found.vector_rrf, DIGITS)),
        Part("Words", found.keyword_rank, words, _formula(found.keyword_rank), round(found.keyword_rrf, DIGITS)),
        Part(
            "Context",
            found.context_rank,
            "words and meaning together with neighbours, conversation, speaker and subject",
            f"{CONTEXT_WEIGHT}/({RRF_K}+{found.context_rank})" if found.context_rank else "",
            round(found.context_rrf, DIGITS),
        ),
    ]


def _formula(rank: int | None) -> str:
    if rank is None:
        return ""
    return f"1/({RRF_K}+{rank})" if rank <= PLAIN_DEPTH else f"not among the first {PLAIN_DEPTH}"
