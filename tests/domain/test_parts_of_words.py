"""What PostgreSQL takes for one word, or for a number with a sign, is found by its parts all the same."""

from importlib import import_module

import pytest
from django.db import connection

from instances.models import Instance
from memories.search.highlighting import snippet
from tests.domain.looking import find
from tests.factories import make_memory

pytestmark = pytest.mark.django_db

MEMORIES = {
    "invoice": "Invoice INV-20311 was paid late",
    "other": "Invoice INV-20312 is disputed",
    "mail": "Carol reads carol.diaz@example.com in the morning",
    "link": "The runbook is at https://wiki.example.com/runbooks/outage-checklist.",
    "version": "The app crashes on 4.12.3",
    "date": "The contract renews on 2026-05-31",
    "phone": "Call Bob at (555) 010-4477",
    "choice": "Guests choose breakfast/lunch the day before",
    "typing": "Dave went home.Then it rained",
    "file": "Empty rows are dropped in billing/parser.py",
    "flag": "Set enableDarkMode for new browsers",
    "party": "The launch 🎉 is at the harbour",
}


@pytest.fixture
def kept(bot: Instance) -> Instance:
    for content in MEMORIES.values():
        make_memory(bot, content)
    return bot


def found(bot: Instance, typed: str) -> list[str]:
    names = {content: name for name, content in MEMORIES.items()}
    return [names[hit.memory.content] for hit in find(bot, typed, mode="keyword").hits]


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        *[(typed, "invoice") for typed in ("INV-20311", "20311", "inv 20311", "#20311")],
        *[(typed, "mail") for typed in ("carol.diaz@example.com", "carol.diaz", "diaz")],
        *[(typed, "link") for typed in ("wiki.example.com", "wiki", "outage-checklist", "checklist", "runbooks")],
        *[(typed, "version") for typed in ("4.12.3", "4.12", "v4.12.3")],
        *[(typed, "date") for typed in ("2026-05-31", "31 May 2026", "2026")],
        *[(typed, "phone") for typed in ("555-010-4477", "4477", "010 4477")],
        *[(typed, "choice") for typed in ("lunch", "breakfast/lunch")],
        *[(typed, "file") for typed in ("parser.py", "parser", "billing/parser.py")],
        *[(typed, "flag") for typed in ("enableDarkMode", "dark mode", "DarkMode")],
        ("home", "typing"),
        ("🎉", "party"),
    ],
)
def test_a_part_finds_it_first(kept: Instance, typed: str, name: str) -> None:
    assert found(kept, typed)[:1] == [name]


def test_parts_are_ranked_below_the_whole(kept: Instance) -> None:
    assert found(kept, "INV-20311") == ["invoice", "other"]
    assert set(found(kept, "example.com")) == {"mail", "link"}


def test_phrases_and_exclusions_know_parts(kept: Instance) -> None:
    assert found(kept, '"INV-20311"') == ["invoice"]
    assert found(kept, '"2026-05-31"') == ["date"]
    assert set(found(kept, '"example.com"')) == {"mail", "link"}
    assert found(kept, '"carol.diaz"') == ["mail"]
    assert found(kept, '"example.carol"') == []
    assert found(kept, '"/runbooks"') == found(kept, '"/runbooks/"') == ["link"]
    assert set(found(kept, '"@example.com"')) == {"mail", "link"}
    assert found(kept, '"DarkMode"') == ["flag"]
    assert found(kept, "invoice -INV-20312") == ["invoice"]
    assert found(kept, "runbook carol -@example.com") == []
    assert found(kept, "rows dark -billing/parser.py") == found(kept, "rows dark -/billing/parser.py") == ["flag"]
    assert found(kept, "runbook carol -example.com") == []


def test_a_negative_number_keeps_its_sign(bot: Instance) -> None:
    make_memory(bot, "It was -5 degrees in Oslo")
    assert find(bot, "5", mode="keyword").hits == []


def test_parts_are_marked() -> None:
    assert "enable<mark>DarkMode</mark>" in snippet(MEMORIES["flag"], ["dark"])
    assert "<mark>INV</mark>-<mark>20311</mark>" in snippet(MEMORIES["invoice"], ["inv", "20311"])
    assert "mark" not in snippet("Unendurable", ["dur"])


def test_what_was_indexed_before_is_found_after_the_migration(bot: Instance) -> None:
    before, now = (
        import_module(f"memories.migrations.{name}") for name in ("0001_functions", "0015_find_parts_and_spellings")
    )
    with connection.cursor() as cursor:
        cursor.execute(before.WORDS.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
        make_memory(bot, MEMORIES["invoice"])
        cursor.execute(now.WORDS)
        assert find(bot, "20311", mode="keyword").corrected, "not indexed yet, but similar to what is"
        cursor.execute(now.ANEW[0])
    assert len(find(bot, "20311", mode="keyword").hits) == 1
    assert not find(bot, "20311", mode="keyword").corrected
