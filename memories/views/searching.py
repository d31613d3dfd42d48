"""Search on the Memory screen: hits with an explanation of their scores."""

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
KEY_MISSING = {"no_key", "no_azure"}
KEY_PROBLEMS = {*KEY_MISSING, "unauthorized"}
BY_RANK = Order(())
MEANING = "Meaning"
LONG = 5
# Scores are rounded to this many digits before they are added up.
DIGITS = 5
# Beyond this the number of results would say how long the lists of a search are, not how many memories have the words.
MANY = 100


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
        """Whether it was found by its vector alone."""
        return not self.matched and self.parts[0].title == MEANING and self.parts[0].rank is not None

    @property
    def score(self) -> str:
        """The sum of the rounded parts, so that the numbers shown add up."""
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
    """The text with unknown words replaced by similar known ones, if other words were found."""

    @property
    def is_hybrid(self) -> bool:
        return self.results.mode == "hybrid"

    @property
    def lacks_key(self) -> bool:
        return self.results.code in KEY_MISSING

    @property
    def only_excludes(self) -> bool:
        return self.results.code == ONLY_EXCLUDES.code

    @property
    def is_by_meaning_alone(self) -> bool:
        return self.results.total > 0 and self.results.worded == 0

    @property
    def found(self) -> str:
        """The number of hits that contain a word of the query, and of the others, which vectors always find."""
        total, worded = self.results.total, self.results.worded
        if self.only_excludes:
            return "Nothing to look for"
        if self.is_by_meaning_alone:
            return "Nothing says these words"
        if worded > MANY:
            return f"More than {MANY} results with these words"
        more = f" with these words, {total - worded:,} more {'by meaning' if self.is_hybrid else 'beside them'}"
        return f"{worded:,} result{'' if worded == 1 else 's'}{more if worded < total else ''}"

    @property
    def asked(self) -> str:
        """The suggestion without its question mark, for a sentence that has its own."""
        return self.suggested.rstrip("?？؟ ")


def text_in(query: QueryDict) -> str:
    """The search text; empty if there is nothing to search for."""
    text = "".join(c for c in query.get("search", "") if c.isprintable() or c.isspace()).strip()[:MAX_CHARACTERS]
    read = read_query(text)
    return "" if read.is_empty and not read.only_excludes else text


def search_page(scope: Scope, text: str, filters: Filters, *, number: int, size: int) -> Search:
    """Page `number` of the hits; a number past the end means the last page.

    The last word always matches as a prefix, whether it is still being typed or not, so that reloading or paging shows
    the same hits.
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
    """The text with unknown words replaced by similar ones, except short ones, which are similar by chance."""
    query = read_query(text)
    found = tuple({stem.rstrip("*")[:LONG] for hit in results.hits for stem in hit.found.matched})
    doubtful = [word for word in SAID.findall(text.lower()) if len(word) >= LONG and not word.startswith(found)]
    if query.has_conditions or not doubtful:
        return ""
    replacements = {
        typed: words[0]
        for typed, words in similar_words(scope, query).replaced.items()
        if typed in doubtful and looks_like(typed, words[0])
    }
    return SAID.sub(lambda word: replacements.get(word[0].lower(), word[0]), text) if replacements else ""


def keep_history_short(request: ConsoleRequest, response: HttpResponse, typed: str = "search") -> HttpResponse:
    """Only the first typed letters make an entry in the browser's history, not the next ones or the same URL."""
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
    """The stems that were found, and prefixes whose stem is not among them."""
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
