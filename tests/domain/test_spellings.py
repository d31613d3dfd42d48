"""One word, spelt in several ways: each finds the others."""

from importlib import import_module

import pytest
from django.db import connection

from instances.models import Instance
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


def test_elsewhere_i_is_i(bot: Instance) -> None:
    make_memory(bot, "KIRMIZI ARABA")
    assert find(bot, "kirmizi", mode="keyword").hits
    assert not find(bot, '"kırmızı"', mode="keyword").hits


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
