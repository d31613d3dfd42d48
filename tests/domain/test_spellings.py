"""One word, spelt in several ways: each finds the others."""

from importlib import import_module

import pytest
from django.db import connection

from instances.models import Instance
from memories.search.highlighting import snippet
from tests.domain.looking import find, texts
from tests.factories import make_instance, make_memory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("language", "content", "typed"),
    [
        # The dot below borrowed letters is often left out; composed and decomposed, it is the same letter.
        ("hindi", "नया दफ़्तर गांधी रोड पर है।", "दफ्तर"),
        ("hindi", "नया दफ्तर गांधी रोड पर है।", "द\u095e्तर"),
        ("hindi", "नया द\u095e्तर गांधी रोड पर है।", "दफ़्तर"),
        ("hindi", "शाम को चाँद निकला", "चांद"),
        ("hindi", "शाम को चांद निकला", "चाँद"),
        ("simple", "कविता को फ़ोन करें", "फोन"),
        # I is the capital of ı, or of i in a borrowed word.
        ("turkish", "Iğdır şubesi dokuzda açılır", "IĞDIR"),
        ("turkish", "IĞDIR ŞUBESİ", "ığdır"),
        ("turkish", "Burak kırmızı bir araba aldı", "KIRMIZI"),
        ("turkish", "KIRMIZI ARABA", "kırmızı"),
        ("turkish", "KIRMIZI ARABA 🎉", "kırmızı"),
        ("turkish", "IBM ile anlaşma", "ibm"),
        ("turkish", "ibm ile anlaşma", "IBM"),
        ("english", "IĞDIR", "ığdır"),
        # These were folded before.
        ("russian", "Тёща живёт в Сочи", "теща"),
        ("greek", "Ο σκύλος του Νίκου", "ΣΚΥΛΟΣ"),
        ("arabic", "المكتب في الإسكندرية", "الاسكندرية"),
    ],
)
def test_another_spelling_finds_it(language: str, content: str, typed: str) -> None:
    bot = make_instance(language=language)
    make_memory(bot, content)
    results = find(bot, typed, mode="keyword")
    assert texts(results) == [content]
    assert not results.corrected


@pytest.mark.parametrize(
    ("language", "content", "typed", "marked"),
    [
        ("greek", "Ο σκύλος του Νίκου", "σκυλος", "Ο <mark>σκύλος</mark> του Νίκου"),
        ("greek", "Ο σκύλος του Νίκου", "ΣΚΎΛΟΙ", "Ο <mark>σκύλος</mark> του Νίκου"),
        ("russian", "Тёща живёт в Сочи", "теща", "<mark>Тёща</mark> живёт в Сочи"),
        ("arabic", "يقع المكتب في الإسكندرية", "مكتب", "يقع <mark>المكتب</mark> في الإسكندرية"),
        ("arabic", "يقع المكتب في الإسكندرية", "الاسكندرية", "يقع المكتب في <mark>الإسكندرية</mark>"),
        ("arabic", "كَتَبَ الوَلَدُ رسالة", "ولد", "كَتَبَ <mark>الوَلَدُ</mark> رسالة"),
        ("hindi", "नया दफ़्तर यहाँ है", "दफ्तर", "नया <mark>दफ़्तर</mark> यहाँ है"),
        ("hindi", "नया द\u095e्तर यहाँ है", "दफ्तर", "नया <mark>द\u095e्तर</mark> यहाँ है"),
        # Stems of these languages have no accents.
        ("german", "Frau Müller mag Äpfel", "Müller Apfel", "Frau <mark>Müller</mark> mag <mark>Äpfel</mark>"),
        ("german", "die Größe der Straße", "grosse Strassen", "die <mark>Größe</mark> der <mark>Straße</mark>"),
        ("german", "Herr Mueller aus Koeln", "Müller Köln", "Herr <mark>Mueller</mark> aus <mark>Koeln</mark>"),
        ("german", "Frau Mu\u0308ller ruft an", "Müller", "Frau <mark>Mu\u0308ller</mark> ruft an"),
        ("spanish", "una canción española", "canción", "una <mark>canción</mark> española"),
        ("french", "les élèves de Noël", "élève", "les <mark>élèves</mark> de Noël"),
        ("turkish", "Işık Yılmaz aradı", "ışık", "<mark>Işık</mark> Yılmaz aradı"),
        # Wide, narrow and joined letters, and the digits of other scripts.
        ("simple", "ＡＢＣ株式会社", "abc", "<mark>ＡＢＣ</mark>株式会社"),
        ("simple", "ﾊﾟｿｺﾝを買った", "パソコン", "<mark>ﾊﾟｿｺﾝ</mark>を買った"),
        ("simple", "ไม่ใส่น้ำตาล", "น้ำตาล", "ไม่ใส่<mark>น้ำตาล</mark>"),
        ("simple", "the ﬁnance oﬃce", "finance", "the <mark>ﬁnance</mark> oﬃce"),
        ("arabic", "الساعة ٣ لسنة ٢٠٢٦", "2026", "الساعة ٣ لسنة <mark>٢٠٢٦</mark>"),
        ("simple", "שָׁלוֹם דוד", "שלום", "<mark>שָׁלוֹם</mark> דוד"),
    ],
)
def test_it_is_marked_as_it_is_spelt(language: str, content: str, typed: str, marked: str) -> None:
    bot = make_instance(language=language)
    make_memory(bot, content)
    [hit] = find(bot, typed, mode="keyword").hits
    assert snippet(content, hit.found.matched) == marked


def test_elsewhere_i_is_i(bot: Instance) -> None:
    make_memory(bot, "KIRMIZI ARABA")
    assert not find(bot, "kirmizi", mode="keyword").corrected
    assert find(bot, '"kırmızı"', mode="keyword").corrected == {"kırmızı": "kirmizi"}


def test_what_was_indexed_before_is_found_after_the_migration() -> None:
    now = import_module("memories.migrations.0022_spellings_of_hindi_and_turkish")
    hindi, turkish = make_instance(language="hindi"), make_instance(language="turkish")
    with connection.cursor() as cursor:
        cursor.execute(now.before.FOLDED)
        cursor.execute(now.planned.WORDS)
        make_memory(hindi, "नया दफ़्तर गांधी रोड पर है।")
        make_memory(turkish, "KIRMIZI ARABA")
        for statement in (now.FOLDED, now.WORDS):
            cursor.execute(statement)
        assert not find(hindi, '"दफ्तर"', mode="keyword").hits
        for statement in now.ANEW:
            cursor.execute(statement)
    assert find(hindi, '"दफ्तर"', mode="keyword").hits
    assert find(turkish, '"kırmızı"', mode="keyword").hits
