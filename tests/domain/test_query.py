"""Reading what was typed: which words count, which are required, which are not wanted."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memories.search.query import MAX_CHARACTERS, MAX_EXCLUDED, MAX_REQUIRED, Phrase, read_query

TEA, COFFEE = Phrase("green tea"), Phrase("black coffee")


def test_every_word_counts_and_none_is_required() -> None:
    query = read_query("what does Alice drink?")
    assert (query.text, query.required, query.excluded) == ("what does Alice drink?", (), ())
    assert not query.has_conditions


@pytest.mark.parametrize(
    ("typed", "text", "required", "excluded"),
    [
        ('"green tea"', "green tea", [[TEA]], []),
        ("“green tea”", "green tea", [[TEA]], []),
        ("„green tea“", "green tea", [[TEA]], []),
        ("«green tea»", "green tea", [[TEA]], []),
        ('Alice "green tea" hot', "Alice green tea hot", [[TEA]], []),
        ('"green tea" "black coffee"', "green tea black coffee", [[TEA], [COFFEE]], []),
        ('"green tea" or "black coffee"', "green tea black coffee", [[TEA, COFFEE]], []),
        ('"green tea" OR water hot', "green tea water hot", [[TEA, Phrase("water")]], []),
        ("tea or coffee", "tea coffee", [], []),
        ("or", "or", [], []),
        ("tea or", "tea or", [], []),
        ("or tea", "or tea", [], []),
        ("tea -milk", "tea", [], [Phrase("milk")]),
        ('tea -"oat milk" -sugar', "tea", [], [Phrase("oat milk"), Phrase("sugar")]),
        ("-milk", "", [], [Phrase("milk")]),
        ("tea -ABC-123", "tea", [], [Phrase("ABC 123")]),
        ("tea -example.com", "tea", [], [Phrase("example.com", (), "example com")]),
        ("tea -@example.com", "tea", [], [Phrase("@example.com", (), "example com")]),
        ("tea -.NET -#milk", "tea", [], [Phrase(".NET"), Phrase("#milk")]),
        ("tea -- milk -.. -", "tea -- milk -.. -", [], []),
        ('"/etc/hosts."', "/etc/hosts.", [[Phrase("/etc/hosts.", (), "etc hosts")]], []),
        ('"DarkMode"', "DarkMode", [[Phrase("DarkMode", (), "Dark Mode")]], []),
        ('"a.b c.d"', "a.b c.d", [[Phrase("a.b c.d")]], []),
        ("well-known - tea", "well-known - tea", [], []),
        ("„green tea“-Kanne", "green tea -Kanne", [[TEA]], []),
        ('"green tea"-"milk"', 'green tea -"milk"', [[TEA]], []),
        ('"green tea"?', "green tea ?", [[TEA]], []),
        ('an "open quote', 'an "open quote', [], []),
        ('6" pipe and 8" pipe', '6" pipe and 8" pipe', [], []),
        ('""', "", [], []),
        ('"绿茶好"', "绿茶好", [[Phrase("", ("'绿茶'", "'茶好'"))]], []),
        ('"茶"', "茶", [[Phrase("", ("'茶':*",))]], []),
        ('"green 绿茶"', "green 绿茶", [[Phrase("green", ("'绿茶'",))]], []),
        ("tea -绿茶好", "tea", [], [Phrase("", ("'绿茶'", "'茶好'"))]),
        ('请问 "green tea"', "请问 green tea", [[TEA]], []),
        ("今天我们一起去喝什么 -绿茶", "今天我们一起去喝什么", [], [Phrase("", ("'绿茶'",))]),
        ('"green tea";', "green tea ;", [[TEA]], []),
    ],
)
def test_operators(typed: str, text: str, required: list[list[Phrase]], excluded: list[Phrase]) -> None:
    query = read_query(typed)
    assert query.text == text
    assert [list(phrases) for phrases in query.required] == required
    assert list(query.excluded) == excluded


@pytest.mark.parametrize(
    "typed",
    [
        'Who drinks "green tea"?',
        'Who wrote "What is tea?"',
        "Tee- und -tassen?",
        "Was heißt „Tee“-Kanne?",
        "“绿茶”是什么?",
        "请问谁最喜欢喝的是“绿茶”",
        'ใครเป็นคนที่ชอบดื่ม "ชาเขียว" มากที่สุด',
        "من يشرب «الشاي»؟",
        "Ποιος πίνει «πράσινο τσάι»;",
    ],
)
def test_a_question_has_no_operators(typed: str) -> None:
    query = read_query(typed, typing=True)
    assert (query.text, query.has_conditions, query.prefix) == (typed, False, "")


@pytest.mark.parametrize(
    ("typed", "prefix"),
    [
        ("pizz", "pizz"),
        ("Alice Piz", "piz"),
        ("pizza ", ""),
        ("p", ""),
        ("pizza -che", ""),
        ('"green tea"', ""),
        ("ABC-12", "12"),
        ("喜欢", ""),
        ("茶", "茶"),
        ("pizza!", ""),
        # A sign for a vowel is inside of a word, or ends it.
        ("अच्छा डॉक्टर", "डॉक्टर"),
        ("अच्छे डॉ", "डॉ"),
    ],
)
def test_the_word_still_being_typed(typed: str, prefix: str) -> None:
    assert read_query(typed, typing=True).prefix == prefix


def test_only_while_typing_is_a_word_unfinished() -> None:
    assert read_query("pizz").prefix == ""
    assert read_query("茶").prefix == "茶", "a single character is the beginning of a pair"


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("", ""),
        (" \t\n", ""),
        ("tea\x00milk", "tea milk"),
        ("tea\x07\x1b[31mmilk", "tea [31mmilk"),
        ("ＡＢＣ　１２３", "ABC 123"),
        ("\ud83d tea \udc00", "tea"),
        ("😀", "😀"),
        ("Cafe\u0301", "Café"),
    ],
)
def test_cleaning(typed: str, text: str) -> None:
    assert read_query(typed).text == text


def test_there_are_limits() -> None:
    assert len(read_query("word " * 10_000).text) <= MAX_CHARACTERS
    assert len(read_query('"a b" ' * 100).required) == MAX_REQUIRED
    assert len(read_query("-a " * 100).excluded) == MAX_EXCLUDED


@given(st.text(st.characters(), max_size=60), st.booleans())
@settings(max_examples=200)
def test_anything_can_be_typed(typed: str, typing: bool) -> None:
    query = read_query(typed, typing=typing)
    query.text.encode()
    assert query.text == " ".join(query.text.split())
    assert query.is_empty == (query.text == "")


@given(st.text('ab -"or“”茶好', max_size=40))
@settings(max_examples=200)
def test_words_are_wanted_or_not_and_never_lost(typed: str) -> None:
    query = read_query(typed)
    said = query.text + "".join(phrase.words + "".join(phrase.pieces) for phrase in query.excluded)
    assert {sign for sign in typed if sign in "ab茶好"} <= set(said)


@pytest.mark.parametrize("typed", ["???", "...", "-", "_", "' \" \\ % & | ! ( ) : * <->", "»«", "。", "$ + ="])
def test_signs_alone_are_nothing(typed: str) -> None:
    assert read_query(typed).is_empty
    assert read_query(typed, typing=True).is_empty


@pytest.mark.parametrize("typed", ["a", "7", "c++", "🎉", "中", "½", "-- x", "हि"])
def test_letters_digits_and_pictures_are_something(typed: str) -> None:
    assert not read_query(typed).is_empty
