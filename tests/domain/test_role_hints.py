"""Hints about the role that a text sounds like."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.role_hints import LOOKED_AT, role_hint
from memories.vocabulary import Role

TEXTS = [
    ("I'm also responsible for watching the payment gateway", "identity"),
    ("My role is to answer billing questions", "identity"),
    ("Ich bin auch für Rückfragen zuständig", None),
    ("Ich bin zuständig für Rückfragen zur Rechnung", "identity"),
    ("Meine Aufgabe ist die erste Antwort", "identity"),
    ("Never deploy on Fridays: it caused an outage", "lesson"),
    ("Next time, ask for the order number first", "lesson"),
    ("Don't quote prices by phone, because they change weekly", "lesson"),
    ("Niemals freitags ausliefern", "lesson"),
    ("Immer erst die Kundennummer erfragen", "lesson"),
    ("Ne jamais déployer le vendredi", "lesson"),
    ("Nunca desplegar los viernes", "lesson"),
    ("We chose short-lived tokens with refresh", "decision"),
    ("The board has agreed to renew for two years", "decision"),
    ("Wir haben uns für die kleine Lösung entschieden", "decision"),
    ("Es wurde vereinbart, jeden Montag zu sprechen", "decision"),
    ("Nous avons décidé de changer de fournisseur", "decision"),
    ("Hemos decidido cambiar de proveedor", "decision"),
    ("The dashboard is at https://status.example.org/latency", "reference"),
    ("Latency: metrics.internal/d/api-latency", "reference"),
    ("Die Preisliste ist zu finden unter Vertrieb", "reference"),
    ("The first migration was completed on 2026-03-15", "historical"),
    ("Acme used to be a customer", "historical"),
    ("Der Umzug wurde im März abgeschlossen", "historical"),
    ("El proyecto fue terminado", "historical"),
    ("Alice works at Acme", None),
    ("Alice prefers tea", None),
    ("", None),
    ("张伟喜欢喝茶", None),
    ("Whenever she calls, be brief; a nevermore poster hangs there", None),
]


@pytest.mark.parametrize(("text", "role"), TEXTS)
def test_what_a_text_sounds_like(text: str, role: str | None) -> None:
    hint = role_hint(text, Role.CONTEXT)
    assert (hint.role if hint else None) == role
    if hint:
        assert hint.words in text
        assert f"“{hint.words}” sounds like a" in hint.reason
        assert role_hint(text, hint.role) is None, "no hint for the role it has"


@pytest.mark.parametrize(
    "text", ["The migration is in progress", "Der Umbau läuft noch", "Alice ist derzeit in Berlin", "En cours"]
)
def test_what_is_true_just_now_is_context(text: str) -> None:
    hint = role_hint(text, Role.HISTORICAL)
    assert hint
    assert hint.role == Role.CONTEXT
    assert role_hint(text, Role.CONTEXT) is None


def test_a_text_that_speaks_for_its_role_is_left_alone() -> None:
    text = "We decided to never deploy on Fridays"
    assert role_hint(text, Role.LESSON) is None
    assert role_hint(text, Role.DECISION) is None
    assert role_hint(text, Role.REFERENCE)


def test_the_role_with_more_words_wins() -> None:
    hint = role_hint("We decided it: never on Fridays, always with a second pair of eyes", Role.CONTEXT)
    assert hint
    assert (hint.role, hint.words) == (Role.LESSON, "never")


def test_only_the_beginning_of_a_long_text_is_looked_at() -> None:
    assert role_hint("a " * LOOKED_AT + "never do this", Role.CONTEXT) is None


@given(st.text(max_size=300), st.sampled_from(Role.values))
def test_any_text_has_an_answer(text: str, role: str) -> None:
    hint = role_hint(text, role)
    assert hint is None or hint.role != role


@pytest.mark.parametrize("part", ["wurde ", "https://", "a.", "don't ", "x-"])
def test_a_hostile_text_costs_nothing_much(part: str) -> None:
    began = process_time()
    role_hint(part * 2000, Role.CONTEXT)
    assert process_time() - began < 0.5
