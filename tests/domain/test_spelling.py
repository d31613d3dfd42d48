"""What was probably meant: a word that can be read, and is spelt as somebody wrote it."""

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from accounts.access import actor_of_user
from instances.models import Instance
from memories.deletion import delete_memory
from memories.draft import MemoryChanges
from memories.filters import Filters
from memories.models import Memory
from memories.search.hybrid import search
from memories.search.likeness import is_slip, similarity, trigrams
from memories.store import change
from tests.domain.looking import find, texts
from tests.factories import make_instance, make_memories, make_memory, make_user, scope_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("language", "content", "typed", "meant"),
    [
        ("english", "The restaurants were closed", "restuarant", "restaurants"),
        ("english", "The nighthouse is dark", "lighthouse", "nighthouse"),
        ("german", "Die Häuser am Bodensee", "bodnesee", "bodensee"),
        ("german", "Äpfel und Birnen", "äpfle", "äpfel"),
        ("russian", "Алиса живёт в Петербурге", "питербурге", "петербурге"),
        ("simple", "Η Αλίκη ζει στη Θεσσαλονίκη", "θεσαλονίκη", "θεσσαλονίκη"),
        ("simple", "أليس تحب القهوة", "القهوه", "القهوة"),
        # An Arabic stem does not begin as its word does, with the article.
        ("arabic", "ذهب إلى القاهرة", "القاهره", "القاهرة"),
        ("arabic", "عاد من المدرسة", "المدرصة", "المدرسة"),
        # Signs for vowels do not end a word.
        ("hindi", "मोहन एक अस्पताल में डॉक्टर है", "डाक्टर", "डॉक्टर"),
        ("english", "राहुल के कुत्ते का नाम शेरू है", "कुत्ता", "कुत्ते"),
        ("tamil", "எனக்கு மருத்துவமனை பிடிக்கும்", "மருத்துவமணை", "மருத்துவமனை"),
    ],
)
def test_every_language_is_corrected(language: str, content: str, typed: str, meant: str) -> None:
    bot = make_instance(language=language)
    make_memory(bot, content)
    assert find(bot, typed).corrected == {typed: meant}


@pytest.mark.parametrize(
    ("language", "content", "typed", "meant"),
    [
        ("english", "Her résumé is long", "resume", "résumé"),
        ("turkish", "Abone değişirse haber ver", "degisirse", "değişirse"),
        ("turkish", "Yeni şifre gerekli", "sifre", "şifre"),
        ("simple", "Văn phòng ở quận 1, chưa gồm VAT", "van", "văn"),
        ("simple", "Mẹ vợ của Đức có điện thoại", "duc", "đức"),
        ("simple", "Chuyển về Cần Thơ, có điện thoại", "tho", "thơ"),
        ("simple", "Zażółć gęślą jaźń", "gesla", "gęślą"),
        # Its ending too, as with words that begin so.
        ("simple", "Piotr mieszka w Gdańsku", "gdansk", "gdańsku"),
        ("simple", "Pies Łukasza i kot Łukaszka", "lukasz", "łukasza, łukaszka"),
        # Or other letters may stand for them.
        ("english", "The office in Köln", "koeln", "köln"),
        ("english", "Größe XL, please", "groesse", "größe"),
        ("simple", "Jürgen mag Øl", "juergen", "jürgen"),
        ("simple", "Un cœur en hiver", "coeur", "cœur"),
        ("english", "The office in Koeln", "köln", "koeln"),
        ("english", "Grosse Hunde", "große", "grosse"),
        ("english", "Fussgaenger frei", "fußgänger", "fussgaenger"),
        ("english", "Her resume is long", "résumé", "resume"),
        ("simple", "Cho Lon, Tan Binh", "bình", "binh"),
    ],
)
def test_accents_may_be_left_out(language: str, content: str, typed: str, meant: str) -> None:
    bot = make_instance(language=language)
    make_memory(bot, content)
    results = find(bot, typed, mode="keyword")
    assert (results.corrected, texts(results)) == ({typed: meant}, [content])


@pytest.mark.parametrize("typed", ["绿茶好", "カフエ", "ชอบบ", "o'brein", "12345", "abc-124"])
def test_what_looks_like_nothing_stays(bot: Instance, typed: str) -> None:
    make_memory(bot, "Alice likes red wine")
    assert find(bot, typed).corrected == {}


@pytest.mark.parametrize("typed", ["1985", "1948", "20312", "lh1235", "0125", "45678", '"1985"'])
def test_another_number_is_no_misspelling(bot: Instance, typed: str) -> None:
    make_memory(bot, "Bob, born in 1984, paid INV-20311 for flight LH1234 with 0.125 off, code 994567")
    results = find(bot, typed, mode="keyword")
    assert (texts(results), results.corrected) == ([], {})
    assert find(bot, "lj1234", mode="keyword").corrected == {"lj1234": "lh1234"}


def test_several_words_are_corrected_at_once(bot: Instance) -> None:
    make_memory(bot, "The lighthouse keeper of Portsmouth")
    results = find(bot, "lighthuose kepeer portsmuoth xyzzy")
    assert results.corrected == {"lighthuose": "lighthouse", "kepeer": "keeper", "portsmuoth": "portsmouth"}
    assert len(results.hits) == 1


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ('"creme brulee"', {"creme": "crème", "brulee": "brûlée"}),
        ('"crème brulee"', {"brulee": "brûlée"}),
        ('"creme cake" or "likes creme"', {"creme": "crème"}),
        ('"inv20311"', {"inv20311": "inv 20311"}),
        ('"loan comp"', {"comp": "comp…"}),
        ('"ordnung"', {"ordnung": "hausordnung, prüfungsordnung"}),
    ],
)
def test_words_in_quotes_are_looked_for_as_they_were_meant(bot: Instance, typed: str, meant: dict[str, str]) -> None:
    content = "Alice likes crème brûlée, INV-20311 is of the loan company, and Hausordnung und Prüfungsordnung"
    make_memory(bot, content)
    make_memory(bot, "Brûlée is no crème")
    results = find(bot, typed, mode="keyword")
    assert results.corrected == meant
    assert texts(results) == [content]


def test_of_two_that_are_alike_the_more_common_one_is_meant(bot: Instance) -> None:
    for content in ("Alice knows Marbok", "Alice met Marbot", "Marbot again"):
        make_memory(bot, content)
    assert find(bot, "marbox").corrected == {"marbox": "marbot"}


@pytest.mark.parametrize("typed", ["exprot", "exort", "exxport", "ezport", "expotr", "xeport"])
def test_a_slip_of_the_fingers_is_nearer_than_what_looks_alike(bot: Instance, typed: str) -> None:
    make_memory(bot, "The export is done")
    make_memory(bot, "Their expired exploits explored the airport")
    assert find(bot, typed).corrected == {typed: "export"}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("export", "exprot", True),
        ("export", "exports", True),
        ("export", "xport", True),
        ("export", "expert", True),
        ("export", "exproted", False),
        ("export", "exrpto", False),
        ("abba", "baba", True),
        ("abba", "baab", False),
        ("tea", "tae", False),
    ],
)
def test_slips(one: str, other: str, expected: bool) -> None:
    assert is_slip(one, other) is is_slip(other, one) is expected


def test_a_word_of_an_old_memory_is_known(bot: Instance) -> None:
    make_memory(bot, "Alice painted a nighthouse", category="event")
    make_memories(bot, 120)
    assert find(bot, "nighthouse", {"category": "fact"}).corrected == {}


def test_a_private_word_is_its_owners(bot: Instance) -> None:
    make_memory(bot, "Bob fears the lighthouse", visibility="private", owner="bob")
    told = {}
    for name in ("alice", "bob"):
        scope = scope_of(bot, actor_of_user(make_user(name, bot)))
        told[name] = search(scope, "lighthuose", Filters()).corrected
    assert told == {"alice": {}, "bob": {"lighthuose": "lighthouse"}}


def test_what_is_no_longer_said_is_no_suggestion(bot: Instance) -> None:
    memories = [make_memory(bot, content) for content in ("The lighthouse", "A windmill", "The cathedral")]
    change(scope_of(bot), memories[0].id, MemoryChanges(content="The harbour"))
    delete_memory(scope_of(bot), memories[1].id)
    Memory.objects.filter(id=memories[2].id).update(status="superseded")
    for typed in ("lighthuose", "windmlil", "cathedrla"):
        assert find(bot, typed).corrected == {}


@pytest.mark.parametrize(
    ("language", "content", "typed", "looked_for"),
    [
        ("english", "Parcel 1Z999AA10123456784 came back", "1z999", "1z999…"),
        ("english", "Parcel 1Z999AA10123456784 came back", "123456784", "1z999aa10123456784"),
        ("english", "Invoice INV-20311 was paid", "2031", "2031…"),
        ("english", "Invoice INV-20311 was paid", "inv20311", "inv 20311"),
        ("english", "The hotline is +49 30 1234567", "0301234567", "49301234567"),
        ("english", "The hotline is (415) 555-0132", "14155550132", "4155550132"),
        ("english", "Her mobile is +4917612345678", "017612345678", "+4917612345678, 4917612345678"),
        ("english", "We use postgresql, not a post", "postgrs", "postgresql"),
        ("english", "Frau Müller, Gartenstraße 12", "straße", "gartenstraße"),
        ("german", "Herr Schäfer hat eine Nussallergie", "nuss", "nuss…"),
        ("german", "Die Krankenversicherung zahlt", "versicherung", "krankenversicherung"),
        ("german", "Die Versicherung zahlt", "versicherungsnummer", "versicherung"),
        ("simple", "يجب إرسال الفاتورة", "فاتورة", "الفاتورة"),
        ("hindi", "अनीता का जन्मदिन सात जुलाई को है", "जन्म", "जन्म…"),
    ],
)
def test_part_of_a_word_finds_it(language: str, content: str, typed: str, looked_for: str) -> None:
    bot = make_instance(language=language)
    make_memory(bot, content)
    make_memory(bot, "Something else altogether")
    results = find(bot, typed)
    assert (texts(results), results.corrected) == ([content], {typed: looked_for})


@pytest.mark.parametrize(
    ("language", "content", "typed", "looked_for"),
    [
        ("simple", "יעל מעדיפה קפה בבוקר", "הקפה", "קפה"),
        ("simple", "יעל מעדיפה קפה בבוקר", "והבוקר", "בבוקר"),
        ("simple", "לכלב של דני קוראים שוקו", "כלב", "לכלב"),
        ("english", "משה גר בחיפה, ודנה אוהבת את חיפה", "שמחיפה", "בחיפה, חיפה"),
        ("english", "يفضل أحمد القهوة", "قهوة", "القهوة"),
        ("english", "يفضل أحمد القهوة", "بقهوة", "القهوة"),
        ("arabic", "اسم قطة ليلى هو مشمش", "القطة", "قطة"),
    ],
)
def test_what_is_written_as_one_with_the_word_behind_it_may_differ(
    language: str, content: str, typed: str, looked_for: str
) -> None:
    bot = make_instance(language=language)
    make_memory(bot, content)
    results = find(bot, typed, mode="keyword")
    assert (texts(results), results.corrected) == ([content], {typed: looked_for})


@pytest.mark.parametrize("typed", ["שמש", "הים", "مدرسة"])
def test_another_word_is_no_prefix(bot: Instance, typed: str) -> None:
    make_memory(bot, "דני חלם חלום על ים, والدرس في البيت")
    assert find(bot, typed, mode="keyword").corrected == {}


def test_all_words_that_contain_it_are_looked_for(bot: Instance) -> None:
    for content in ("Die Hauptstraße ist gesperrt", "Die Gartenstraße ist offen", "Die Hauptstraße wird gebaut"):
        make_memory(bot, content)
    results = find(bot, "straße")
    assert (len(results.hits), results.corrected) == (3, {"straße": "hauptstraße, gartenstraße"})


@pytest.mark.parametrize("typed", ["cat", "pets", "arpet", "12"])
def test_a_few_letters_are_not_part_of_a_word(bot: Instance, typed: str) -> None:
    make_memory(bot, "The category of the carpets is 4123")
    assert find(bot, typed).corrected.get(typed, "") in {"", "carpets"}


def test_a_beginning_is_found_in_an_old_memory(bot: Instance) -> None:
    make_memory(bot, "Alice painted a nighthouse")
    make_memories(bot, 1_100)
    results = find(bot, "nightho")
    assert (texts(results), results.corrected) == (["Alice painted a nighthouse"], {"nightho": "nightho…"})


def test_a_private_beginning_is_its_owners(bot: Instance) -> None:
    make_memory(bot, "Bob fears the lighthouse", visibility="private", owner="bob")
    told = {}
    for name in ("alice", "bob"):
        scope = scope_of(bot, actor_of_user(make_user(name, bot)))
        told[name] = [search(scope, typed, Filters()).corrected for typed in ("lightho", "ghthouse")]
    assert told == {"alice": [{}, {}], "bob": [{"lightho": "lightho…"}, {"ghthouse": "lighthouse"}]}


@given(st.text("abcdé", min_size=3, max_size=9), st.text("abcdé", min_size=3, max_size=9))
def test_words_are_as_alike_as_the_database_finds_them(one: str, other: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT similarity(%s, %s)", [one, other])
        assert similarity(trigrams(one), trigrams(other)) == pytest.approx(cursor.fetchone()[0])


@pytest.mark.parametrize("typing", [False, True])
@pytest.mark.parametrize("letter", ["雪", "か", "я", "a", "1"])
def test_what_is_too_long_for_a_word_is_looked_for_nowhere(letter: str, typing: bool) -> None:
    """The first 2,000 characters count, and PostgreSQL takes no word of more than 2,046 bytes."""
    bot = make_instance()
    make_memory(bot, "Alice likes tea")
    assert texts(find(bot, letter * 10_000, typing=typing)) == []
    assert texts(find(bot, f"tea {letter * 1_500}", typing=typing)) == ["Alice likes tea"]


@pytest.mark.parametrize(("typed", "meant"), [("mlik", "milk"), ("taem", "team"), ("paln", "plan")])
def test_the_two_letters_in_the_middle_of_four_are_swapped(bot: Instance, typed: str, meant: str) -> None:
    make_memory(bot, f"Alice and her {meant}")
    assert find(bot, typed).corrected == {typed: meant}
