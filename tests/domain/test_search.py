"""Search finds it: by word, stem, phrase, beginning, identifier, letters and meaning, and says why it found it."""

from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from accounts.access import actor_of_user
from instances.models import Instance
from memories import search as searching
from memories import search_sql
from memories.backfill import embed_pending
from memories.draft import MemoryChanges
from memories.filters import Filters
from memories.models import Memory, WordFrequency
from memories.search import Results, search
from memories.store import change
from memoryconsole.inputs import read
from tests.factories import make_conversation, make_instance, make_memories, make_memory, make_user, scope_of
from tests.openai_server import OpenAIServer

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["small", "large"], autouse=True)
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Everything twice: the statements for small instances, and those for large ones."""
    if request.param == "large":
        monkeypatch.setattr(searching, "EXACT_UP_TO", 0)
    return str(request.param)


@pytest.fixture
def bot() -> Instance:
    return make_instance("support-bot")


@pytest.fixture
def hashed() -> Instance:
    """Vectors without a key: texts are near when they share letters."""
    return make_instance("offline-bot", embedder="offline")


def embed(instance: Instance) -> None:
    embed_pending(scope_of(instance))


def find(instance: Instance, text: str, filters: dict[str, Any] | None = None, **how: Any) -> Results:
    return search(scope_of(instance), text, read(Filters, filters or {}), **how)


def texts(results: Results) -> list[str]:
    return [hit.memory.content for hit in results.hits]


# By words


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("Alice lives in Bern", "bern"),
        ("Alice lives in Bern", "Where does Alice live?"),
        ("The dogs were running", "run dog"),
        ("Ticket ABC-123 is open", "ABC-123"),
        ("Ticket ABC-123 is open", "abc-123"),
        ("Write to ann.smith@example.org please", "ann.smith@example.org"),
        ("The report is in q3_report.final.pdf now", "q3_report.final.pdf"),
        ("See /etc/hosts for names", "/etc/hosts"),
        ("It listens on 127.0.0.1:8000", "127.0.0.1"),
        ("Her number is +41 79 123 45 67", "79 123 45 67"),
        ("Version 2.13.1 has the fix", "2.13.1"),
        ("See https://example.org/docs/start for more", "example.org/docs/start"),
        ("O'Brien likes C++ and C#", "o'brien"),
        ("我喜欢喝绿茶", "绿茶"),
        ("我喜欢喝绿茶", "茶"),
        ("我喜欢喝绿茶", "谁喜欢喝茶"),
        ("カフェで会いましょう", "カフェ"),
        ("ｶﾌｪで会いましょう", "カフェ"),
        ("ＡＢＣ１２３の件", "ABC123"),
        ("한국어를 공부한다", "한국어"),
        ("ฉันชอบดื่มชา", "ชอบ"),
        ("أليس تحب الشاي الأخضر", "الشاي"),
        ("אליס אוהבת תה ירוק", "תה"),
        ("آلیس می‌خواهد چای بنوشد", "می‌خواهد"),
        ("Cafe\u0301 au lait", "café"),
        ("Ζώα και φυτά", "φυτά"),
    ],
)
@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_it_is_found(hashed: Instance, content: str, query: str, mode: Any) -> None:
    make_memory(hashed, "Something else entirely")
    make_memory(hashed, content)
    embed(hashed)
    results = find(hashed, query, mode=mode)
    assert texts(results)[0] == content
    assert results.hits[0].found.matched
    assert results.corrected == {}


def test_german_is_spoken() -> None:
    bot = make_instance(language="german")
    make_memory(bot, "Die Häuser am See wurden verkauft")
    make_memory(bot, "Der Vertrag läuft aus")
    assert texts(find(bot, "Welches Haus ist verkauft?")) == ["Die Häuser am See wurden verkauft"]


def test_emoji_are_found_by_their_likeness(hashed: Instance) -> None:
    make_memory(hashed, "🍕🍕🍕")
    make_memory(hashed, "Something else")
    embed(hashed)
    assert texts(find(hashed, "🍕🍕🍕"))[0] == "🍕🍕🍕"


@pytest.mark.parametrize(
    ("fields", "query"),
    [
        ({"tags": ["breakfast"]}, "breakfast"),
        ({"key": "favourite-drink"}, "favourite drink"),
        ({"summary": "A hot beverage"}, "beverages"),
        ({"owner": "carol"}, "carol"),
        ({"occurredAt": "2023-05-08T12:00:00Z"}, "What happened on 8 May 2023?"),
        ({"owner": "张小明"}, "张小明"),
    ],
)
def test_what_is_known_about_it_is_found(bot: Instance, fields: dict[str, Any], query: str) -> None:
    make_memory(bot, "Likes tea", **fields)
    make_memory(bot, "Something else")
    assert texts(find(bot, query)) == ["Likes tea"]


def test_rare_words_weigh_more(bot: Instance) -> None:
    for n in range(12):
        make_memory(bot, f"Alice said hello {n}")
    make_memory(bot, "The zeppelin landed")
    assert texts(find(bot, "Alice zeppelin"))[0] == "The zeppelin landed"


def test_more_words_weigh_more(bot: Instance) -> None:
    make_memory(bot, "Green tea and milk")
    make_memory(bot, "Green apples")
    make_memory(bot, "Milk and honey")
    assert texts(find(bot, "green milk"))[0] == "Green tea and milk"


def test_a_long_memory_is_found_by_its_last_paragraph(bot: Instance) -> None:
    filling = "\n\n".join("Bears sleep all winter long. " * 20 for _ in range(8))
    make_memory(bot, f"{filling}\n\nThe password of the lighthouse is kept by Ingrid.")
    (hit,) = find(bot, "lighthouse").hits
    assert "Ingrid" in (hit.found.content or "")
    assert "Chapter" not in (hit.found.content or "")


# Operators


def test_a_phrase_must_be_there(bot: Instance) -> None:
    make_memory(bot, "Green tea is hot")
    make_memory(bot, "Tea is green")
    assert texts(find(bot, '"green tea"')) == ["Green tea is hot"]
    assert texts(find(bot, '"green teas"')) == ["Green tea is hot"], "in any form of its words"
    assert find(bot, '"tea green"').hits == []


def test_phrases_may_be_alternatives(bot: Instance) -> None:
    make_memory(bot, "Green tea is hot")
    make_memory(bot, "Black coffee is hot")
    make_memory(bot, "Milk is hot")
    assert set(texts(find(bot, 'hot "green tea" or "black coffee"'))) == {"Green tea is hot", "Black coffee is hot"}
    assert find(bot, 'hot "green tea" "black coffee"').hits == []
    assert set(texts(find(bot, 'hot "green tea" or milk'))) == {"Green tea is hot", "Milk is hot"}
    assert len(find(bot, "tea or coffee").hits) == 2


def test_phrases_may_stand_in_different_chunks(bot: Instance) -> None:
    filling = "\n\n".join("Bears sleep all winter long. " * 20 for _ in range(4))
    memory = make_memory(bot, f"The red apple.\n\n{filling}\n\nThe blue pear.")
    assert [hit.memory.id for hit in find(bot, '"red apple" "blue pear"').hits] == [memory.id]
    assert find(bot, '"red apple" -pear').hits == [], "what is excluded may not stand anywhere in it"


def test_a_word_can_be_excluded(hashed: Instance) -> None:
    make_memory(hashed, "Tea with milk")
    make_memory(hashed, "Tea with lemon")
    embed(hashed)
    for mode in ("hybrid", "keyword", "vector"):
        assert texts(find(hashed, "tea -milk", mode=mode)) == ["Tea with lemon"]
        assert texts(find(hashed, 'tea -"with lemon"', mode=mode)) == ["Tea with milk"]
    assert find(hashed, "-milk").hits == []


@pytest.mark.parametrize(("query", "found"), [('"绿茶好"', ["我说绿茶好喝"]), ("喝 -绿茶好", ["他喝红茶"])])
def test_operators_work_without_spaces(bot: Instance, query: str, found: list[str]) -> None:
    make_memory(bot, "我说绿茶好喝")
    make_memory(bot, "他喝红茶")
    assert texts(find(bot, query)) == found


def test_neighbours_keep_to_the_conditions(bot: Instance) -> None:
    conversation = make_conversation(bot)
    for content in ("The red apple", "A pear with anchovy", "Nothing of note"):
        make_memory(bot, content, sourceConversationId=str(conversation.id))
    assert texts(find(bot, '"red apple"')) == ["The red apple"]
    assert "A pear with anchovy" not in texts(find(bot, "apple -anchovy"))


def test_the_word_being_typed_is_matched_from_its_beginning(bot: Instance) -> None:
    make_memory(bot, "Alice likes pizza")
    assert texts(find(bot, "piz", typing=True)) == ["Alice likes pizza"]
    assert texts(find(bot, "alice piz", typing=True)) == ["Alice likes pizza"]
    assert texts(find(bot, "li", typing=True)) == ["Alice likes pizza"]
    assert find(bot, "li ", typing=True).hits == []


# Typos


def test_a_word_that_is_nowhere_is_corrected(bot: Instance) -> None:
    make_memory(bot, "Alice visited the restaurant")
    results = find(bot, "restuarant")
    assert (texts(results), results.corrected) == (["Alice visited the restaurant"], {"restuarant": "restaurant"})


def test_nothing_is_corrected_when_something_matches(bot: Instance) -> None:
    make_memory(bot, "Alice visited the restaurant")
    assert find(bot, "alice restuarant").corrected == {}


def test_stop_words_are_not_corrected(bot: Instance) -> None:
    make_memory(bot, "Theodor visited Andorra")
    assert find(bot, "the and").corrected == {}


def test_what_the_filters_take_away_is_no_typo(bot: Instance) -> None:
    make_memory(bot, "Alice visited the restaurant", category="event")
    results = find(bot, "restaurant", {"category": "fact"})
    assert (results.hits, results.corrected) == ([], {})


def test_every_page_of_a_corrected_search_is_corrected(bot: Instance) -> None:
    for n in range(3):
        make_memory(bot, f"The restaurant number {n}")
    pages = [find(bot, "restuarant", limit=1, offset=n) for n in range(4)]
    assert [len(page.hits) for page in pages] == [1, 1, 1, 0]
    assert {page.total for page in pages} == {3}
    assert all(page.corrected == {"restuarant": "restaurant"} for page in pages)
    assert len({page.hits[0].memory.id for page in pages[:3]}) == 3


# Bad input

AWKWARD = [
    *("", " ", "a", "x" * 10_000, "word " * 2000, "the of and", "???", "\x00", "a\x00b", "\ud800"),
    *(
        "'",
        '"',
        "\\",
        "%",
        "_",
        "&",
        "|",
        "!",
        "(",
        ")",
        ":",
        "*",
        "<->",
        "' \" \\ % _ & | ! ( ) : * <->",
        "a:*",
        "!a & b",
    ),
    *("😀", "👨‍👩‍👧", "שלום", "مرحبا", "日本語", "ไทย", "\u202eabc", "-", "--", "-a", '-"', '"" or ""', "or", "or or"),
    *("''", "'a' & !'b'", "a\\'b", "%(x)s", "%s", "{x}", "$1", "'; DROP TABLE memories_memory; --", "\u0301", "a<2>b"),
]


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_awkward_queries(hashed: Instance, mode: Any) -> None:
    make_memory(hashed, 'Alice\'s "tea" \\ 100% a_b & c | d ! (e) : f * <-> 日本語 😀', owner="alice")
    embed(hashed)
    for query in AWKWARD:
        for filters in ({}, {"category": "general"}):
            find(hashed, query, filters, mode=mode, typing=True)
            find(hashed, query, filters, mode=mode)


@given(st.text(max_size=40), st.text(max_size=40), st.booleans())
@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_can_be_searched_for(text: str, query: str, typing: bool) -> None:
    bot = make_instance(embedder="offline")
    content = text.replace("\x00", "").encode("utf-8", "ignore").decode().strip()
    if content:
        make_memory(bot, content)
    make_memory(bot, "Alice likes tea")
    embed(bot)
    find(bot, query, typing=typing)
    find(bot, f'"{query}" -{query} or {query}')


# By meaning


def test_meaning_is_found(bot: Instance, openai: OpenAIServer) -> None:
    make_memory(bot, "The dog sleeps in the hall")
    make_memory(bot, "The invoice is overdue")
    embed(bot)
    results = find(bot, "puppy")
    assert (texts(results)[0], results.mode, results.reason) == ("The dog sleeps in the hall", "hybrid", "")
    assert results.hits[0].found.vector_rank == 1
    assert texts(find(bot, "puppy", mode="vector"))[0] == "The dog sleeps in the hall"
    assert find(bot, "puppy", mode="keyword").hits == []


def test_without_a_key_words_are_searched_and_it_is_said(bot: Instance) -> None:
    make_memory(bot, "Alice likes tea")
    results = find(bot, "tea")
    assert (texts(results), results.mode) == (["Alice likes tea"], "keyword")
    assert "No OpenAI or Azure key" in results.reason
    assert find(bot, "tea", mode="keyword").reason == ""
    nothing = find(bot, "tea", mode="vector")
    assert (nothing.hits, nothing.mode, "No OpenAI" in nothing.reason) == ([], "vector", True)


def test_before_the_first_vector_words_are_searched(bot: Instance, openai: OpenAIServer) -> None:
    make_memory(bot, "Alice likes tea")
    results = find(bot, "tea")
    assert (texts(results), results.mode) == (["Alice likes tea"], "keyword")
    assert "No memory has a vector yet" in results.reason


@pytest.mark.parametrize("fault", ["server_error", "unauthorized", "rate_limited", "reset", "nan", "wrong_dimensions"])
def test_when_the_api_fails_words_are_searched(bot: Instance, openai: OpenAIServer, fault: str) -> None:
    make_memory(bot, "Alice likes tea")
    embed(bot)
    openai.fail(fault)
    results = find(bot, "tea")
    assert (texts(results), results.mode) == (["Alice likes tea"], "keyword")
    assert results.reason.endswith("Search finds words but not meaning.")


def test_without_a_vector_no_vector_rank_is_made_up(bot: Instance) -> None:
    """NULL distances sort somewhere: with two rows both would be ranked, and hits would score twice."""
    make_memory(bot, "Alice likes tea")
    make_memory(bot, "Bob likes tea")
    results = find(bot, "tea")
    assert len(results.hits) == 2
    for hit in results.hits:
        assert (hit.found.vector_rank, hit.found.similarity, hit.found.vector_rrf) == (None, None, 0)


def test_paging_does_not_ask_for_the_vector_again(bot: Instance, openai: OpenAIServer) -> None:
    for n in range(4):
        make_memory(bot, f"The dog number {n}")
    embed(bot)
    before = len(openai.requests)
    for offset in range(4):
        find(bot, "puppy", limit=1, offset=offset)
    assert len(openai.requests) == before + 1


def test_many_chunks_of_one_memory_do_not_hide_other_memories(hashed: Instance) -> None:
    for n in range(6):
        make_memory(hashed, "\n\n".join(f"Tea {n} {m}. " + "Alice likes green tea. " * 40 for m in range(25)))
    make_memory(hashed, "Bob mentioned tea once, among a hundred other unrelated things of the day")
    embed(hashed)
    assert find(hashed, "Alice likes green tea", mode="vector").total == 7


# Order and explanation


def test_the_score_is_the_sum_of_its_parts(hashed: Instance) -> None:
    conversation = make_conversation(hashed)
    for n in range(15):
        make_memory(hashed, f"Alice likes tea number {n}", sourceConversationId=str(conversation.id))
    make_memory(hashed, "Bob likes coffee")
    embed(hashed)
    hits = find(hashed, "alice tea", limit=100).hits
    assert [hit.found.final for hit in hits] == sorted((hit.found.final for hit in hits), reverse=True)
    for found in (hit.found for hit in hits):
        ranks = (found.vector_rank, found.vector_rrf), (found.keyword_rank, found.keyword_rrf)
        for rank, rrf in ranks:
            within = rank is not None and rank <= search_sql.PLAIN_DEPTH
            assert rrf == pytest.approx(1 / (60 + rank) if rank and within else 0)
        assert found.context_rank is not None
        assert found.context_rrf == pytest.approx(search_sql.CONTEXT_WEIGHT / (60 + found.context_rank))
        assert found.final == pytest.approx(found.vector_rrf + found.keyword_rrf + found.context_rrf)
        assert found.total == len(hits)
    for ranks in zip(*[(h.found.vector_rank, h.found.keyword_rank, h.found.context_rank) for h in hits], strict=True):
        given_ranks = sorted(rank for rank in ranks if rank is not None)
        assert given_ranks == list(range(1, len(given_ranks) + 1)), "ranks have no gaps and no twins"


def test_the_order_is_always_the_same(hashed: Instance) -> None:
    make_memories(hashed, 5)
    twins = [make_memory(hashed, "Alice likes tea") for _ in range(6)]
    embed(hashed)
    orders = [[hit.memory.id for hit in find(hashed, "tea alice", mode=mode).hits] for mode in MODES for _ in range(2)]
    for one, again in zip(orders[::2], orders[1::2], strict=True):
        assert one == again
        assert one[:6] == [memory.id for memory in reversed(twins)], "of equals the newest comes first"


MODES: list[Any] = ["hybrid", "keyword", "vector"]


@pytest.mark.parametrize("mode", MODES)
def test_pages_have_no_twins_and_no_gaps(hashed: Instance, mode: Any) -> None:
    conversation = make_conversation(hashed)
    for n in range(23):
        where = {"sourceConversationId": str(conversation.id)} if n % 2 else {}
        make_memory(hashed, f"Alice likes tea {n}", importance=n % 10 + 1, **where)
    embed(hashed)
    whole = [hit.memory.id for hit in find(hashed, "alice tea", mode=mode, limit=100).hits]
    paged = [find(hashed, "alice tea", mode=mode, limit=5, offset=offset) for offset in range(0, 30, 5)]
    assert [hit.memory.id for page in paged for hit in page.hits] == whole
    assert len(set(whole)) == len(whole) == 23
    assert {page.total for page in paged} == {23}


def test_matched_words_are_told(bot: Instance) -> None:
    make_memory(bot, "Alice likes green tea")
    (hit,) = find(bot, "green coffee teas").hits
    assert sorted(hit.found.matched) == ["green", "tea"]
    assert hit.found.worded == 1


# Who may see what


def test_two_instances_do_not_know_of_each_other(hashed: Instance) -> None:
    other = make_instance("other-bot", embedder="offline")
    theirs = make_conversation(other)
    for n in range(3):
        make_memory(other, f"The secret zeppelin {n}", sourceConversationId=str(theirs.id))
    make_memory(hashed, "Alice likes tea")
    embed(hashed)
    embed(other)
    for mode in MODES:
        assert set(texts(find(hashed, "secret zeppelin tea", mode=mode))) == {"Alice likes tea"}
    results = find(hashed, "zepelin", mode="keyword")
    assert (results.hits, results.total, results.corrected) == ([], 0, {})


def test_private_memories_are_their_owners(hashed: Instance) -> None:
    bob = make_user("bob", hashed)
    conversation = make_conversation(hashed)
    for content, fields in [
        ("Alice secretly flies a zeppelin", {"owner": "alice", "visibility": "private"}),
        ("Alice likes tea", {}),
        ("Bob secretly likes tea", {"owner": "bob", "visibility": "private"}),
    ]:
        make_memory(hashed, content, sourceConversationId=str(conversation.id), **fields)
    embed(hashed)
    scope = scope_of(hashed, actor_of_user(bob))
    for mode in MODES:
        found = search(scope, "who secretly likes tea or a zeppelin", Filters(), mode=mode)
        assert set(texts(found)) == {"Alice likes tea", "Bob secretly likes tea"}
        assert found.total == 2
    results = search(scope, "zepelin", Filters(), mode="keyword")
    assert (results.hits, results.corrected) == ([], {})
    assert search(scope_of(hashed), "zepelin", Filters(), mode="keyword").corrected == {"zepelin": "zeppelin"}


@pytest.mark.parametrize("mode", MODES)
def test_what_has_expired_is_never_found(hashed: Instance, mode: Any) -> None:
    conversation = make_conversation(hashed)
    gone = make_memory(hashed, "Tea at five", sourceConversationId=str(conversation.id))
    make_memory(hashed, "Tea at six", sourceConversationId=str(conversation.id))
    embed(hashed)
    Memory.objects.filter(id=gone.id).update(expires_at=timezone.now())
    assert texts(find(hashed, "tea", mode=mode)) == ["Tea at six"]
    assert texts(find(hashed, "tea", {"includeSuperseded": "true"}, mode=mode)) == ["Tea at six"]


@pytest.mark.parametrize("filters", [{}, {"includeSuperseded": "true"}])
def test_what_waits_for_review_is_not_found(hashed: Instance, filters: dict[str, str]) -> None:
    memory = make_memory(hashed, "Tea at five")
    embed(hashed)
    Memory.objects.filter(id=memory.id).update(review="pending")
    for mode in MODES:
        assert find(hashed, "tea", filters, mode=mode).hits == []


def test_earlier_texts_are_found_when_asked_for(hashed: Instance) -> None:
    memory = make_memory(hashed, "The office is in Bonn")
    embed(hashed)
    change(scope_of(hashed), memory.id, MemoryChanges(content="The office is in Bern"))
    embed(hashed)
    assert find(hashed, "bonn", mode="keyword").hits == []
    (hit,) = find(hashed, "bonn", {"includeSuperseded": "true"}).hits
    assert (hit.memory.id, hit.found.content) == (memory.id, "The office is in Bonn")
    assert hit.version is not None
    assert (hit.version.number, hit.version.content) == (1, "The office is in Bonn")
    (hit,) = find(hashed, "bern", {"includeSuperseded": "true"}).hits
    assert (hit.version, hit.found.content) == (None, "The office is in Bern")


@pytest.mark.parametrize("mode", MODES)
def test_superseded_memories_are_found_when_asked_for(hashed: Instance, mode: Any) -> None:
    make_memory(hashed, "The office is in Bonn", key="office")
    make_memory(hashed, "The office is in Bern", key="office", dedupe="create")
    embed(hashed)
    assert texts(find(hashed, "office", mode=mode)) == ["The office is in Bern"]
    both = find(hashed, "office bonn", {"includeSuperseded": "true"}, mode="keyword")
    assert set(texts(both)) == {"The office is in Bonn", "The office is in Bern"}


# Large instances


def test_common_words_do_not_choose_the_rows(bot: Instance, size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "WORD_BUDGET", 20)
    for n in range(30):
        make_memory(bot, f"Alice said hello number {n}")
    make_memory(bot, "Alice flew a zeppelin")
    WordFrequency.objects.create(instance=bot, word="alic", chunks=31)
    results = find(bot, "alice zeppelin", limit=100)
    assert texts(results)[0] == "Alice flew a zeppelin"
    assert len(results.hits) == (31 if size == "small" else 1)


def test_only_common_words_still_find_something(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "WORD_BUDGET", 5)
    for n in range(10):
        make_memory(bot, f"Alice said hello number {n}")
    make_memory(bot, "Hello to whom it concerns")
    for word in ("alic", "hello", "said"):
        WordFrequency.objects.create(instance=bot, word=word, chunks=10)
    assert texts(find(bot, "alice said hello"))[0].startswith("Alice said hello")
    assert "Hello to whom it concerns" not in texts(find(bot, "alice"))
