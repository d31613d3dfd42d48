"""The snippet of a hit: what is marked, what is cut, and that nothing but marks is HTML."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.search.highlighting import WINDOW, snippet


def marked(content: str, *matched: str) -> list[str]:
    return [unescape(word) for word in re.findall("<mark>(.*?)</mark>", snippet(content, matched))]


def plain(html: str) -> str:
    return unescape(re.sub("</?mark>", "", html))


@pytest.mark.parametrize(
    ("content", "matched", "expected"),
    [
        ("Alice renews contracts.", ["renew", "contract"], ["renews", "contracts"]),
        ("RENEWAL of the renewal", ["renew"], ["RENEWAL", "renewal"]),
        ("The company and its companies", ["compani"], ["company", "companies"]),
        ("prerenewal", ["renew"], []),
        ("Every e-mail ends here", ["e-mail", "e", "mail"], ["e-mail"]),
        ("Call the café", ["café"], ["café"]),
        ("Call the café", ["cafe"], ["café"]),
        ("Petr bydlí tady", ["bydlí"], ["bydlí"]),
        ("La reunión es aquí, lunedì", ["aqui", "lunedì"], ["aquí", "lunedì"]),
        # Of the two ways of writing it the index has one, and the Romanian stemmer the other.
        ("Ileana locuiește la Braşov", ["locuieşt", "brașov"], ["locuiește", "Braşov"]),
        ("In 2023, not in 20231", ["2023"], ["2023"]),
        ("Write to bob@example.com today", ["bob@example.com"], ["bob@example.com"]),
        ("part_number AB-12.5", ["number", "ab-12.5"], ["number", "AB-12.5"]),
        ("Still typing contr", ["contr*"], ["contr"]),
        ("contractor", ["co*"], ["contractor"]),
        ("我们在东京都见面", ["东京", "京都"], ["东京都"]),
        ("京都に行く", ["京*"], ["京"]),
        ("สวัสดีครับ", ["สวั", "ครั"], ["สวั", "ครั"]),
        ("مرحبا بالعالم", ["مرحبا"], ["مرحبا"]),
        ("हिन्दी भाषा", ["हिन्दी"], ["हिन्दी"]),
        ("🎉 party 🎉", ["🎉"], ["🎉", "🎉"]),
        ("Thumbs 👍🏽 up, ❤️", ["👍", "❤"], ["👍🏽", "❤️"]),
        ("A 👨‍👩‍👧 day in 🇩🇪", ["👨", "👩", "👧", "🇩", "🇪"], ["👨‍👩‍👧", "🇩🇪"]),
        ("A 👨‍👩‍👧 day", ["👩"], []),
        ("毎月のCSVファイルを送る", ["csv"], ["CSV"]),
        ("在2026年买了iPhone手机", ["2026", "iphon"], ["2026", "iPhone"]),
        ("ไฟล์CSVใหม่", ["csv"], ["CSV"]),
        ("nothing here", [], []),
        ("nothing here", ["", "*"], []),
    ],
)
def test_what_is_marked(content: str, matched: list[str], expected: list[str]) -> None:
    assert marked(content, *matched) == expected


def test_a_short_text_is_shown_whole() -> None:
    assert snippet("Alice prefers  tables.\nAlways.", ["tabl"]) == "Alice prefers <mark>tables</mark>. Always."


def test_a_long_text_is_shown_around_the_words() -> None:
    shown = snippet("padding " * 100 + "the renewal date is in May " + "padding " * 100, ["renew", "date"])
    assert "the <mark>renewal</mark> <mark>date</mark> is in May" in shown
    assert shown.startswith("… padding ")
    assert shown.endswith("padding …")
    assert len(plain(shown)) <= WINDOW + 4


def test_where_most_of_the_words_stand_wins_over_the_first() -> None:
    content = "A date. " + "padding " * 100 + "The renewal date. " + "padding " * 100
    assert "The <mark>renewal</mark> <mark>date</mark>." in snippet(content, ["renew", "date"])


def test_without_words_it_begins_at_the_beginning() -> None:
    shown = snippet("Beginning " + "padding " * 100, ["elsewhere"])
    assert shown.startswith("Beginning padding")
    assert "<mark>" not in shown


@pytest.mark.parametrize("where", ["start", "end"])
def test_words_at_the_ends(where: str) -> None:
    content = "renewal " + "padding " * 100 if where == "start" else "padding " * 100 + "renewal"
    shown = snippet(content, ["renew"])
    assert "<mark>renewal</mark>" in shown
    assert shown.startswith("…") is (where == "end")


def test_html_is_text() -> None:
    shown = snippet("<script>alert('x')</script> & \"more\"", ["script", "alert", "amp", "lt", "quot", "x27"])
    tag = "&lt;{}<mark>script</mark>&gt;"
    assert shown == (tag.format("") + "<mark>alert</mark>(&#x27;x&#x27;)" + tag.format("/") + " &amp; &quot;more&quot;")


TEXTS = st.text(st.one_of(st.characters(), st.sampled_from("ab e-'<>&\"; \n東京都สวกอ")), max_size=900)


@given(TEXTS, st.lists(st.text(max_size=6), max_size=8))
def test_only_marks_are_html_and_the_text_is_the_contents(content: str, matched: list[str]) -> None:
    shown = snippet(content, matched)
    parts = re.split("(</?mark>)", shown)
    assert re.fullmatch("(?:<mark></mark>)*", "".join(parts[1::2]))
    assert not re.search("[<>\"']", "".join(parts[::2]))
    text = plain(shown).removeprefix("… ").removesuffix(" …")
    assert text in " ".join(content.split())
    assert len(text) <= WINDOW


@given(st.lists(st.text("abcdefgh", min_size=3, max_size=12), min_size=1, max_size=400), st.data())
def test_a_word_that_is_there_is_marked(words: list[str], data: st.DataObject) -> None:
    word = data.draw(st.sampled_from(words))
    assert any(found.startswith(word) for found in marked(" ".join(words), word))
