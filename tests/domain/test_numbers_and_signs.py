"""Numbers, measures, versions and initials are written in several ways, and some words are nothing without a sign."""

from importlib import import_module

import pytest
from django.db import connection

from instances.models import Instance
from memories.search.highlighting import snippet
from tests.domain.looking import find, texts
from tests.factories import make_memory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("content", "typed"),
    [
        *[("Laura paid $1,200 for it", typed) for typed in ("1200", "1,200", "1.200", "1_200", '"1200"')],
        *[("Der Preis ist 1.234.567,89 Euro", typed) for typed in ("1234567", "1,234,567")],
        ("The limit is 50_000 requests", "50000"),
        ("Die Miete ist 1’200 Franken", "1200"),
        ("La maison coûte 250\u202f000 euros", "250000"),
        ("The warehouse holds 50000 boxes", "50,000"),
        ("The bolt is 5mm thick", "5 mm"),
        ("The bolt is 5 mm thick", "5mm"),
        ("The wedding is on June 14th", "14"),
        ("Standup is at 9:30am", '"9:30"'),
        *[("It was fixed in v4.12.3", typed) for typed in ("4.12.3", '"4.12.3"', '"4.12"', '"v4.12"', '"v4.12.3"')],
        ("It was fixed in v4.12.3", '"fixed in v4.12.3"'),
        ("It was fixed in 4.12.3", '"v4.12.3"'),
        ("She moved to the U.K. in May", "UK"),
        ("She moved to the UK in May", "U.K."),
        *[("Type /deploy to release it", typed) for typed in ("deploy", "/deploy", '"/deploy"', '"deploy"')],
        *[("Notes are in ~/diary", typed) for typed in ("diary", "~/diary", '"~/diary"')],
        ("Her number is +491701234567", "491701234567"),
        *[("Call Bob at (415) 555-0132", typed) for typed in ("4155550132", "415.555.0132", '"4155550132"')],
        ("Fax: +1-202-555-0199", "+12025550199"),
        ("Carl: 06.12.34.56.78", "0612345678"),
        ("Support: 0800 123 45 67", "0800 1234567"),
        ("Her mobile is +4917612345678", "+49 176 1234 5678"),
        ("Card 4111 1111 1111 1111", "4111111111111111"),
        ("Backed up on 2026-03-12 14:30", "20260312"),
        ("Send it by e-mail", "email"),
        ("Send it by email", "e-mail"),
        ("Ihre E-Mail-Adresse", "email"),
        ("He wears a T-shirt", "tshirt"),
        ("The wifi is slow", "Wi-Fi"),
        *[("He worked for AT&T", typed) for typed in ("AT&T", "at&t", '"AT&T"')],
    ],
)
def test_either_way_finds_it(bot: Instance, content: str, typed: str) -> None:
    make_memory(bot, "Something else about 3 other things")
    make_memory(bot, content)
    results = find(bot, typed, mode="keyword")
    assert texts(results)[:1] == [content]
    assert not results.corrected


def test_a_sign_tells_one_word_from_another(bot: Instance) -> None:
    for language in ("C++", "C#", "C"):
        make_memory(bot, f"Erin writes {language} at work")
    assert texts(find(bot, "C++", mode="keyword"))[0] == "Erin writes C++ at work"
    assert texts(find(bot, "c#", mode="keyword"))[0] == "Erin writes C# at work"
    assert texts(find(bot, '"C#"', mode="keyword")) == ["Erin writes C# at work"]
    assert len(find(bot, "C", mode="keyword").hits) == 3
    assert "Erin writes C# at work" not in texts(find(bot, "Erin -C#", mode="keyword"))
    assert len(find(bot, "Erin -C#", mode="keyword").hits) == 2


def test_what_only_looks_like_it_is_left_alone(bot: Instance) -> None:
    make_memory(bot, "The printer is at 192.168.1.45, see page#top?a=b&c=d and 0.125")
    for typed in ('"192168"', '"0125"', '"b&c"', '"page#"'):
        assert not find(bot, typed, mode="keyword").hits, typed


@pytest.mark.parametrize(
    ("content", "matched", "marked"),
    [
        ("It costs $1,200 now", ["1200"], "It costs $<mark>1,200</mark> now"),
        ("It costs 12001 or 1,2001 now", ["1200"], "It costs 12001 or 1,2001 now"),
        ("Fixed in v4.12.3", ["4.12.3", "12"], "Fixed in v<mark>4.12.3</mark>"),
        ("Call (415) 555-0132 now", ["4155550132"], "Call (<mark>415) 555-0132</mark> now"),
        ("Send it by E-Mail now", ["email"], "Send it by <mark>E-Mail</mark> now"),
        ("The bolt is 5mm thick", ["5"], "The bolt is <mark>5</mark>mm thick"),
        ("The bolt is 5mm thick", ["mm"], "The bolt is 5<mark>mm</mark> thick"),
        ("She likes the U.K. a lot", ["uk"], "She likes the <mark>U.K</mark>. a lot"),
        ("Erin writes C++ and C", ["c++"], "Erin writes <mark>C++</mark> and C"),
        ("He worked for AT&T", ["at&t"], "He worked for <mark>AT&amp;T</mark>"),
    ],
)
def test_it_is_marked_as_it_is_written(content: str, matched: list[str], marked: str) -> None:
    assert snippet(content, matched) == marked


def test_what_was_indexed_before_is_found_after_the_migration(bot: Instance) -> None:
    migration = import_module("memories.migrations.0024_numbers_and_signs")
    with connection.cursor() as cursor:
        cursor.execute(migration.before.CUT)
        make_memory(bot, "Laura paid $1,200 for it")
        make_memory(bot, "Erin writes C++ at work")
        make_memory(bot, "Call Bob at (415) 555-0132")
        make_memory(bot, "Send it by e-mail")
        cursor.execute(migration.CUT)
        assert not find(bot, '"1200"', mode="keyword").hits
        for statement in migration.ANEW:
            cursor.execute(statement)
    assert find(bot, '"1200"', mode="keyword").hits
    assert find(bot, '"C++"', mode="keyword").hits
    assert find(bot, "4155550132", mode="keyword").hits
    assert find(bot, "email", mode="keyword").hits
    assert not find(bot, "email", mode="keyword").corrected
