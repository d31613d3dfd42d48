"""Search finds it: by word, stem, phrase, beginning, identifier and letters, and says why it found it."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from accounts.access import actor_of_user
from instances.models import Instance
from memories.filters import Filters
from memories.models import Memory, WordFrequency
from memories.search import planning
from memories.search.hybrid import search
from memoryconsole.inputs import is_visible
from tests.domain.looking import embed, find, texts
from tests.factories import make_conversation, make_instance, make_memories, make_memory, make_user, scope_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("size")]


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
        ("ΖΩΑ ΚΑΙ ΦΥΤΑ ΌΛΑ", "φυτά όλα"),
        ("كَتَبَتْ أليس الـكـتـاب", "الكتاب"),
        ("احمد يحب الشاي", "أحمد"),
        ("שָׁלוֹם עולם", "שלום"),
        ("दिल्ली में चाय १९४७ से", "1947"),
        ("दिल्ली में चाय", "दिल्ली"),
        ("Ёжик в тумане", "ежик"),
        ("Iaşi este un oraş", "Iași"),
        ("Işık hızlı gider", "ışık"),
        ("佐々木さんは茶が好き", "佐々木"),
        ("The Donau\u00addampfer sails", "Donaudampfer"),
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


# How it is said


@pytest.mark.parametrize(
    ("better", "other", "query"),
    [
        ("Tea is green in spring.", "Is tea green in spring?", "When is tea green?"),
        ("茶在春天是绿色的。", "茶在春天是绿色吗？", "茶在春天"),
        ("Alice thanked Carol for tea", "Carol thanked Alice for tea", "What did Alice say about tea?"),
        ("小明感谢小红的茶", "小红感谢小明的茶", "小明 茶"),
        ("मीना ने राम को चाय दी", "राम ने मीना को चाय दी", "मीना और चाय"),
        ("Alice: Carol likes tea", "Carol: Alice likes tea", "What did Alice say about tea?"),
        ("小明：小红喜欢茶", "小红：小明喜欢茶", "小明说喜欢什么"),
    ],
    ids=[
        "an answer, not a question",
        "in any script",
        "its subject",
        "its subject without spaces",
        "its subject with vowel signs",
        "who said it",
        "who said it without spaces",
    ],
)
def test_of_the_same_words(bot: Instance, better: str, other: str, query: str) -> None:
    for content in (better, other, "Something else entirely, and of some length"):
        make_memory(bot, content)
    assert texts(find(bot, query))[:2] == [better, other]


def test_few_words_rarely_tell_much(bot: Instance) -> None:
    conversation = make_conversation(bot)
    told = ["It was red, with a cabin of glass and brass", "A zeppelin landed", "Yes"]
    for content in told:
        make_memory(bot, content, sourceConversationId=str(conversation.id))
    assert texts(find(bot, "zeppelin")) == [told[1], told[0], told[2]]


def test_turns_lend_more_to_their_neighbours_than_facts(bot: Instance) -> None:
    for name, speaker in (("turns", "Alice: "), ("facts", "")):
        conversation = make_conversation(bot, externalId=name)
        for content in ("A zeppelin landed", "It was red"):
            make_memory(bot, f"{speaker}{content}", sourceConversationId=str(conversation.id))
    assert texts(find(bot, "zeppelin"))[2:] == ["Alice: It was red", "It was red"]


def test_a_wide_colon_makes_a_turn_too(bot: Instance) -> None:
    for name, speaker in (("turns", "小明："), ("facts", "")):
        conversation = make_conversation(bot, externalId=name)
        for content in ("飞艇降落了", "很红"):
            make_memory(bot, f"{speaker}{content}", sourceConversationId=str(conversation.id))
    assert texts(find(bot, "飞艇降落"))[2:] == ["小明：很红", "很红"]


@pytest.mark.parametrize("first", [{"pinned": True}, {"importance": 9}])
@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_of_the_same_text_what_matters_more_comes_first(hashed: Instance, first: dict[str, Any], mode: Any) -> None:
    better = make_memory(hashed, "Alice drinks tea", **first)
    for _ in range(3):
        make_memory(hashed, "Alice drinks tea")
    embed(hashed)
    hits = search(scope_of(hashed), "alice tea", Filters(), mode=mode).hits
    assert len(hits) == 4
    assert hits[0].memory.id == better.id


def test_a_long_memory_is_found_by_its_last_paragraph(bot: Instance) -> None:
    filling = "\n\n".join("Bears sleep all winter long. " * 20 for _ in range(8))
    memory = make_memory(bot, f"{filling}\n\nThe password of the lighthouse is kept by Ingrid.")
    (hit,) = find(bot, "lighthouse").hits
    assert "Ingrid" in (hit.found.content or "")
    assert len(hit.found.content or "") < len(memory.content) / 2


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


@pytest.mark.parametrize("hidden", [{"expires_at": "2020-01-01T00:00:00Z"}, {"review": "pending"}])
def test_a_word_nobody_can_find_is_no_suggestion(bot: Instance, hidden: dict[str, str]) -> None:
    memory = make_memory(bot, "Alice visited the lighthouse")
    Memory.objects.filter(id=memory.id).update(**hidden)
    assert find(bot, "lighthuose").corrected == {}


def test_whether_a_word_is_corrected_does_not_tell_what_is_private(bot: Instance) -> None:
    make_memory(bot, "Bob fears the lighthouses", visibility="private", owner="bob")
    make_memory(bot, "Alice painted a nighthouse")
    scopes = {name: scope_of(bot, actor_of_user(make_user(name, bot))) for name in ("alice", "bob")}
    filters = Filters(category="fact")
    told = {name: search(scope, "lighthouses", filters).corrected for name, scope in scopes.items()}
    assert told == {"alice": {"lighthouses": "nighthouse"}, "bob": {}}


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
    if is_visible(content):
        make_memory(bot, content)
    make_memory(bot, "Alice likes tea")
    embed(bot)
    find(bot, query, typing=typing)
    find(bot, f'"{query}" -{query} or {query}')


# Large instances


def test_common_words_do_not_choose_the_rows(bot: Instance, size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "WORD_BUDGET", 50)
    for n in range(30):
        make_memory(bot, f"Alice said hello number {n}")
    make_memories(bot, 20, content="Alice flew a zeppelin")
    WordFrequency.objects.create(instance=bot, word="alic", chunks=50)
    results = find(bot, "alice zeppelin", limit=100)
    assert texts(results)[0] == "Alice flew a zeppelin"
    assert len(results.hits) == (20 if size == "large" else 50)


def test_only_common_words_still_find_something(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "WORD_BUDGET", 5)
    for n in range(10):
        make_memory(bot, f"Alice said hello number {n}")
    make_memory(bot, "Hello to whom it concerns")
    for word in ("alic", "hello", "said"):
        WordFrequency.objects.create(instance=bot, word=word, chunks=10)
    assert texts(find(bot, "alice said hello"))[0].startswith("Alice said hello")
    assert "Hello to whom it concerns" not in texts(find(bot, "alice"))


@pytest.mark.parametrize("typing", [False, True])
@pytest.mark.parametrize("query", ["invoice blorpx", "invoice", "blorpx coffee invoice", "invoice rarity"])
def test_common_words_are_found_beside_one_that_is_nowhere(
    bot: Instance, size: str, monkeypatch: pytest.MonkeyPatch, query: str, typing: bool
) -> None:
    """A word that nobody says is the rarest of all, and chose the rows alone: none."""
    monkeypatch.setattr(planning, "WORD_BUDGET", 400)
    make_memories(bot, 30, content="An invoice with coffee")
    make_memory(bot, "The invoice is a rarity")
    for word, chunks in (("invoic", 1000), ("coffe", 900)):
        WordFrequency.objects.create(instance=bot, word=word, chunks=chunks)
    results = find(bot, query, mode="keyword", typing=typing)
    assert results.worded >= 30
    assert ("rarity" in texts(results)[0]) == ("rarity" in query)
