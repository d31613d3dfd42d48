"""The words that were found are marked, however their stems begin."""

import re
from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from instances.models import Instance
from memories.search.hybrid import Results
from memories.search.marking import snippets
from tests.domain.looking import find
from tests.factories import make_instance, make_memory

pytestmark = pytest.mark.django_db


def marked(instance: Instance, results: Results) -> list[list[str]]:
    return [re.findall("<mark>(.*?)</mark>", snippet) for snippet in snippets(instance, results.hits)]


@pytest.mark.parametrize(
    ("language", "content", "query", "expected"),
    [
        # The stemmer puts another ending in the place of this one, or another letter.
        ("french", "Elle aime les expériences de chimie", "expérience", ["expériences"]),
        ("french", "Il lit deux journaux", "journal", ["journaux"]),
        ("spanish", "Sus preferencias son claras", "preferencia", ["preferencias"]),
        ("portuguese", "A experiência de Joana", "experiências", ["experiência"]),
        ("turkish", "Mehmet'in köpeğinin adı Karabaş", "köpek", ["köpeğinin"]),
        ("turkish", "İpek'in doğum günü 19 Mayıs", "doğum günü", ["doğum", "günü"]),
        # It leaves one or two letters, with which many words begin.
        ("russian", "Анна пьёт чай каждый час", "чай Анна", ["Анна", "чай"]),
        ("greek", "Τα παιδιά παίζουν πάντα", "παιδιά", ["παιδιά"]),
        # It writes Latin letters.
        ("serbian", "Марко пије кафу без шећера", "Marko pije", ["Марко", "пије"]),
        # It takes away what stands before.
        ("indonesian", "Budi menulis surat panjang", "penulis", ["menulis"]),
        ("arabic", "تأخر الطلب بسبب الجمارك", "سبب", ["بسبب"]),
    ],
)
def test_words_unlike_their_stems(language: str, content: str, query: str, expected: list[str]) -> None:
    bot = make_instance(language=language)
    make_memory(bot, content)
    assert marked(bot, find(bot, query, mode="keyword")) == [expected]


def test_what_another_instance_shares_is_read_in_its_language(bot: Instance) -> None:
    turkish = make_instance("turkish-bot", language="turkish")
    make_memory(turkish, "Mehmet'in köpeğinin adı Karabaş")
    results = find(turkish, "köpek", mode="keyword")
    shared = replace(results, hits=[replace(hit, origin=turkish) for hit in results.hits])
    assert marked(bot, shared) == [["köpeğinin"]]


@pytest.mark.parametrize(("query", "asked"), [("tea and contracts", 0), ("breakfast", 1), ("breakfast tea", 1)])
def test_the_database_is_asked_once_and_only_for_what_does_not_stand_there(
    bot: Instance, query: str, asked: int
) -> None:
    for content in ("Tea is better than contracts", "Bread and tea before contracts"):
        make_memory(bot, content, tags=["breakfast"])
    results = find(bot, query, mode="keyword")
    with CaptureQueriesContext(connection) as queries:
        found = marked(bot, results)
    assert len(queries) == asked
    assert len(found) == 2
    assert "Bread" not in {word for words in found for word in words}
