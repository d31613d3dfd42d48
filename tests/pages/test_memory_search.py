"""GET /memory?search="""

import re
from html import unescape
from importlib import import_module
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from accounts.models import User
from instances.models import Instance
from memories.embedding.backfill import embed_pending
from memories.models import Memory
from tests.factories import make_instance, make_memories, make_memory, make_user, scope_of
from tests.openai_server import OpenAIServer

pytestmark = pytest.mark.django_db


def embed(instance: Instance) -> None:
    embed_pending(scope_of(instance))
    instance.refresh_from_db()


def text(client: Client, query: str, **extra: object) -> str:
    response = client.get(f"/memory?instance=support-bot&{query}", **extra)
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def shown(html: str) -> list[str]:
    """The snippets of the rows, in order, with their marks."""
    return re.findall(r'<a class="memory-text" dir="auto" href="[^"]*">(.*?)</a>', html)


def test_hits_stand_by_rank_with_their_words_marked(alice: Client, support: Instance) -> None:
    make_memory(support, "Acme renews its contract in May.")
    make_memory(support, "The contract of Initech.")
    make_memory(support, "Carol likes tea.")
    html = text(alice, "search=renewal+contract+acme")
    assert shown(html) == [
        "<mark>Acme</mark> <mark>renews</mark> its <mark>contract</mark> in May.",
        "The <mark>contract</mark> of Initech.",
    ]
    assert "2 results" in html
    assert 'value="renewal contract acme"' in html


def test_more_results_than_a_search_lists_are_not_counted(alice: Client, support: Instance) -> None:
    make_memories(support, 201, content="Alice likes tea.")
    assert "<b>More than 100 results with these words</b>" in text(alice, "search=tea")


def test_what_is_merely_near_is_not_counted_as_a_result(alice: Client, offline: Instance) -> None:
    for content in ("Acme renews its contract.", "Carol likes tea.", "The office is in Bern."):
        make_memory(offline, content)
    embed_pending(scope_of(offline))
    assert "<b>1 result with these words, 2 more by meaning</b>" in text(alice, "search=contract")
    html = text(alice, "search=zzqq+xxyy")
    assert "<b>Nothing says these words</b>" in html
    assert "These are the nearest in meaning." in html
    assert len(shown(html)) == 3


def test_the_word_being_typed_counts_from_its_beginning(alice: Client, support: Instance) -> None:
    make_memory(support, "The quarterly business review")
    assert shown(text(alice, "search=quart")) == ["The <mark>quarterly</mark> business review"]


def test_keyword_only_says_why_and_where_to_change_it(alice: Client, support: Instance) -> None:
    make_memory(support, "Alice prefers tables.")
    said = text(alice, "search=tables")
    assert "Keyword only" in said
    assert said.count("Add a key in the settings") == 1, "it is said above the search already"
    Instance.objects.update(memory_enabled=False)
    html = text(alice, "search=tables")
    assert "Keyword only" in html
    assert html.count("No OpenAI or Azure key reaches this instance. Search finds words but not meaning.") == 2
    assert '<a href="/instances/support-bot/settings#openai-key">Add a key in the settings</a></span>' in html
    assert "Hybrid search" not in html


def test_a_key_that_is_not_accepted_leads_to_the_settings(alice: Client, support: Instance, settings: Any) -> None:
    make_memory(support, "Alice prefers tables.")
    Instance.objects.filter(id=support.id).update(embedding_model="text-embedding-3-small")
    import_module("openai.resources.embeddings")  # takes longer than a search waits
    with OpenAIServer() as server:
        settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = server.url, "sk-wrong-0123456789"
        html = text(alice, "search=tables")
    assert "The embeddings API does not accept the key." in html
    assert '<a href="/instances/support-bot/settings#openai-key">' in html.split('class="found"')[1]


def test_hybrid_search_says_so(alice: Client, offline: Instance) -> None:
    make_memory(offline, "Alice prefers tables.")
    before = text(alice, "search=tables")
    assert "Keyword only" in before
    assert "No memory has a vector yet" in before
    assert "settings#" not in before.split('class="found"')[1]
    embed(offline)
    html = text(alice, "search=tables")
    assert "Hybrid search" in html
    assert "Keyword only" not in html


def test_what_says_no_word_of_the_search_is_labelled(alice: Client, offline: Instance) -> None:
    make_memory(offline, "Alice prefers tables.")
    make_memory(offline, "Bob prefers charts.")
    assert "by meaning alone" not in text(alice, "search=tables")
    embed(offline)
    first, second = text(alice, "search=tables").split('<details class="explain">')[1:]
    assert "by meaning alone" not in first
    assert "by meaning alone" in second


def numbers(html: str) -> list[float]:
    """The column of an explanation that adds up, with the sum last."""
    table = html.split('<details class="explain">')[1].split("</details>")[0]
    return [float(n) for n in re.findall(r'<td class="numeric">(\d\.\d{5})', table)]


def test_an_explanation_adds_up(alice: Client, offline: Instance) -> None:
    make_memory(offline, "Alice prefers tables.")
    make_memory(offline, "Bob prefers charts.")
    embed(offline)
    html = text(alice, "search=alice+tables")
    *parts, total = numbers(html)
    assert round(sum(parts), 5) == total
    assert parts == [round(1 / 61, 5), round(1 / 61, 5), round(30 / 61, 5)]
    assert f'<span class="score" title="Score">{total:.5f}</span>' in html
    for part in ("1/(60+1)", "30/(60+1)", "cosine 0.", "<code>alic</code>", "<code>tabl</code>", "neighbours"):
        assert part in html


def test_an_explanation_of_words_alone(alice: Client, support: Instance) -> None:
    make_memories(support, 12, tags=["common"])
    html = text(alice, "search=common")
    assert html.count("not searched for") == 12
    assert html.count("not among the first 10") == 2
    *parts, total = numbers(html)
    assert parts[0] == 0
    assert round(sum(parts), 5) == total


def test_filters_and_chips_apply_to_a_search(alice: Client, support: Instance) -> None:
    make_memory(support, "Tables as a fact", category="fact", tags=["vip"])
    make_memory(support, "Tables as an event", category="event")
    assert len(shown(text(alice, "search=tables"))) == 2
    html = text(alice, "search=tables&category=event")
    assert shown(html) == ["<mark>Tables</mark> as an event"]
    assert shown(text(alice, "search=tables&tag=vip")) == ["<mark>Tables</mark> as a fact"]
    assert 'href="/memory?instance=support-bot&amp;search=tables&amp;category=fact"' in html
    assert '<span class="n">' not in html


def test_pages_of_a_search(alice: Client, support: Instance) -> None:
    make_memories(support, 60, tags=["common"])
    first = text(alice, "search=common")
    assert "1–25 of 60" in first
    assert "anchor=" not in first
    link = re.search(r'href="\?([^"]*page=2[^"]*)"', first)
    assert link
    second = text(alice, unescape(link[1]).removeprefix("instance=support-bot&"))
    assert "26–50 of 60" in second
    third = text(alice, "search=common&page=3")
    hits = [*shown(first), *shown(second), *shown(third)]
    assert len(hits) == len(set(hits)) == 60
    assert len(shown(text(alice, "search=common&size=100"))) == 60


def test_a_page_past_the_end_is_the_last(alice: Client, support: Instance) -> None:
    make_memories(support, 28, tags=["common"])
    html = text(alice, "search=common&page=99")
    assert "There is no page 99; this is page 2." in html
    assert len(shown(html)) == 3
    assert "Nothing found" in text(alice, "search=zzyzx&page=99")


def test_nothing_found_says_what_to_try(alice: Client, support: Instance) -> None:
    make_memory(support, "Alice prefers tables.", category="fact")
    html = text(alice, "search=%3Cb%3Ezzyzx&category=event")
    assert "Nothing found for “&lt;b&gt;zzyzx”" in html
    assert "Try fewer words" in html
    assert 'href="/memory?instance=support-bot&amp;search=%3Cb%3Ezzyzx">Search without filters</a>' in html
    assert "0 results" in html


def test_a_typo_is_corrected_and_said(alice: Client, support: Instance) -> None:
    make_memory(support, "The subscription ends in May.")
    html = text(alice, "search=subscriptoin")
    assert "Showing results for" in html
    assert "<s>subscriptoin</s>" in html
    assert len(shown(html)) == 1


def test_a_typo_beside_a_word_that_is_found_is_asked_about(alice: Client, support: Instance) -> None:
    make_memory(support, "Acme renews its contract in May.", category="fact")
    make_memory(support, "Acme & Sons moved.", category="fact")
    html = text(alice, "search=Acme+contrct&category=fact&page=1")
    link = '<a href="/memory?instance=support-bot&amp;category=fact&amp;search=Acme+contract">Acme contract</a>'
    assert f"Did you mean {link}?" in html
    assert "Showing results for" not in html
    assert len(shown(html)) == 2


def test_a_suggested_question_has_one_question_mark(alice: Client, support: Instance) -> None:
    make_memory(support, "Acme renews its contract in May.")
    assert ">Acme contract</a>?</span>" in text(alice, "search=Acme+contrct%3F")


def test_a_typo_with_signs_for_vowels_is_asked_about(alice: Client, support: Instance) -> None:
    make_memory(support, "मोहन अस्पताल में डॉक्टर है")
    assert ">मोहन डॉक्टर</a>?</span>" in text(alice, "search=मोहन+डाक्टर")


def test_words_of_another_language_are_no_slips(alice: Client, support: Instance) -> None:
    make_memory(support, "Projekte of Acme are in one language.")
    assert "Did you mean" not in text(alice, "search=Wie+lange+dauern+Projekte%3F")


@pytest.mark.parametrize(
    "search", ["Acme+contract", "Acme+contr", "Acme+xyzzyx", "Acme+%22contrct%22", "Acme+cont", "Acme+mai"]
)
def test_nothing_is_suggested_where_nothing_is_misspelt(alice: Client, support: Instance, search: str) -> None:
    make_memory(support, "Acme renews its contract in May.")
    assert "Did you mean" not in text(alice, f"search={search}")


def test_words_that_nobody_here_may_read_are_not_suggested(alice: Client, support: Instance, sales: Instance) -> None:
    make_memory(support, "Acme moved.")
    make_memory(support, "A secret contract", visibility="private", owner="bob")
    make_memory(sales, "Another contract")
    assert "contract" not in text(alice, "search=Acme+contrct")


def test_an_earlier_version_is_found_when_asked_for(alice: Client, support: Instance) -> None:
    make_memory(support, "The demo is on Monday.", key="demo")
    make_memory(support, "The demo is on Tuesday.", key="demo")
    assert shown(text(alice, "search=monday")) == []
    html = text(alice, "search=monday&includeSuperseded=true")
    assert shown(html) == ["The demo is on <mark>Monday</mark>."]
    assert "Superseded: version 1" in html


def test_content_is_escaped(alice: Client, support: Instance) -> None:
    make_memory(support, "<script>alert(1)</script> tables", tags=["<b>"])
    html = text(alice, "search=script+tables+%22%3E%3Cimg+src%3Dx%3E")
    assert "<script>alert" not in html
    assert "<img" not in html
    assert text(alice, f"search={quote('<script>alert(1)</script>')}").count("<script>alert") == 0


def test_htmx_gets_the_hits_alone(alice: Client, support: Instance) -> None:
    make_memory(support, "Alice prefers tables.")
    html = text(alice, "search=tables", headers={"HX-Request": "true"})
    assert len(shown(html)) == 1
    assert "<html" not in html
    assert 'id="search"' not in html


@pytest.mark.parametrize(
    ("before", "typing", "is_replaced"),
    [
        ("", {"X-Typing": "true"}, False),
        ("&search=tab", {"X-Typing": "true"}, True),
        ("&search=tab", {}, False),
        ("&search=tables", {}, True),
    ],
    ids=["first letter", "next letter", "enter", "enter again"],
)
def test_typing_does_not_flood_the_history(
    alice: Client, support: Instance, before: str, typing: dict[str, str], is_replaced: bool
) -> None:
    current = f"http://testserver/memory?instance=support-bot{before}"
    headers = {"HX-Request": "true", "HX-Current-URL": current, **typing}
    response = alice.get("/memory?instance=support-bot&search=tables", headers=headers)
    replaced = "/memory?instance=support-bot&search=tables" if is_replaced else None
    assert response.headers.get("HX-Replace-Url") == replaced


def test_an_exclusion_alone_asks_for_words_to_look_for(alice: Client, support: Instance) -> None:
    make_memory(support, "Coffee at nine")
    make_memory(support, "Tea at five")
    html = text(alice, "search=-coffee")
    assert "Nothing to look for in “-coffee”" in html
    assert "This only says what to leave out. Add words to look for." in html
    assert "Coffee at nine" not in html
    assert 'value="-coffee"' in html


ODD = {
    "empty": "",
    "blank": "   ",
    "one character": "a",
    "one ideograph": "京",
    "ten thousand characters": "memory " * 1428 + "four",
    "one long word": "x" * 10_000,
    "stop words": "the of and is",
    "punctuation": "' \" \\ % _ & | ! ( ) : * <->",
    "unbalanced": "\"a phrase (never' closed",
    "operators": '-tables -"no phrase" or OR ""',
    "only an exclusion": "-tables",
    "tsquery": "a:* & !b <-> c",
    "emoji": "🎉👩‍👩‍👧 party",
    "right to left": "مرحبا ‏עברית‎",
    "ideographs": "我们在东京",
    "nul": "tab\x00les",
    "only nul": "\x00",
    "controls": "\x01\x1b[0m\u2028",
    "format": "%s %(text)s {0}",
    "combining": "e\u0301" * 50,
}


@pytest.mark.parametrize("query", ODD.values(), ids=ODD.keys())
def test_no_search_is_an_error(alice: Client, offline: Instance, query: str) -> None:
    make_memory(offline, "Alice prefers tables. 我们在东京 🎉")
    embed(offline)
    for extra in ("", "&category=general&tag=x", "&page=2"):
        html = text(alice, f"search={quote(query)}{extra}")
        assert 'id="memories"' in html


def test_surrogates_and_broken_bytes_are_no_error(alice: Client, support: Instance) -> None:
    for query in ("%ED%A0%80", "%FF%FE", "%C3"):
        text(alice, f"search={query}")


def test_blank_searches_show_the_list(alice: Client, support: Instance) -> None:
    make_memory(support, "hello")
    for query in ("", "%20%20", "%00"):
        html = text(alice, f"search={query}")
        assert "1 memory" in html
        assert "result" not in html


def test_a_wrong_filter_is_explained_under_a_search_too(alice: Client, support: Instance) -> None:
    make_memory(support, "Alice prefers tables.")
    html = text(alice, "search=tables&minImportance=11")
    assert "Must be at most 10." in html
    assert shown(html) == []


def test_all_hits_cannot_be_selected_at_once(alice: Client, support: Instance) -> None:
    make_memories(support, 30, tags=["common"])
    html = text(alice, "search=common&select=all")
    assert 'name="all"' not in html
    assert "data-select-all" not in html
    assert len(re.findall(r'name="ids"[^>]*checked', html)) == 25
    url = "/memory/bulk-delete?instance=support-bot&search=common"
    alice.post(url, {"all": "1", "expected": "30"})
    assert Memory.objects.filter(instance=support).count() == 30


def test_two_tenants(mallory: Client, alice: Client, support: Instance, sales: Instance) -> None:
    make_memory(support, "Only for support: tables")
    make_memory(sales, "Only for sales: tables")
    assert len(shown(text(alice, "search=tables"))) == 1
    response = mallory.get("/memory?instance=support-bot&search=tables")
    assert response.status_code == 404
    assert "Only for support" not in response.content.decode()
    own = mallory.get("/memory?instance=sales-bot&search=tables").content.decode()
    assert shown(own) == ["Only for sales: <mark>tables</mark>"]


def test_other_peoples_private_memories_are_not_found(alice: Client, superadmin: Client, offline: Instance) -> None:
    make_memory(offline, "Bob's secret tables", visibility="private", owner="bob")
    make_memory(offline, "Alice's own tables", visibility="private", owner="alice")
    embed(offline)
    assert [hit for hit in shown(text(alice, "search=tables")) if "secret" in hit] == []
    assert len(shown(text(alice, "search=tables"))) == 1
    assert len(shown(text(superadmin, "search=tables"))) == 2


def test_a_search_elsewhere_does_not_matter(signed_in, support: Instance) -> None:
    other = make_instance()
    make_memories(other, 3, tags=["common"])
    both = signed_in(make_user("carol", support, other))
    assert "Nothing found" in text(both, "search=common")
    assert User.objects.get(username="carol").last_instance == support
