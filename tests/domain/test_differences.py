"""Differences that keep a newer text from replacing an older one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.learning.differences import differences, overlap


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Alice prefers tea.", "Alice prefers tea in the morning."),
        ("Alice prefers tea.", "alice  prefers TEA"),
        ("The contract of Acme costs 1,000 euros.", "The contract of Acme costs 1000 euros"),
        ("Alice's cat is old", "The cat of Alice is old"),
        ("Dora hat zwei Katzen", "Dora hat 2 Katzen"),
        ("Alice doesn't eat meat", "Alice does not eat meat"),
        ("Alice moved to the coast", "Alice moved into the coast"),
        ("The project began in 2024.", "The project started in 2024"),
    ],
)
def test_another_wording_is_no_difference(old: str, new: str) -> None:
    assert differences(old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("Alice has 2 cats", "Alice has 3 cats", "numbers or dates"),
        ("Alice has two cats", "Alice has three cats", "numbers or dates"),
        ("Alice a deux chats", "Alice a trois chats", "numbers or dates"),
        ("The meeting is at 14:30", "The meeting is at 15:30", "numbers or dates"),
        ("It costs 1.50 euros", "It costs 150 euros", "numbers or dates"),
        ("La réunion est en janvier", "La réunion est en février", "numbers or dates"),
        ("العدد ٣", "العدد ٤", "numbers or dates"),
        ("У Ольги две кошки", "У Ольги три кошки", "numbers or dates"),
        ("Встреча в понедельник", "Встреча во вторник", "numbers or dates"),
        ("Spotkanie w styczniu", "Spotkanie w lutym", "numbers or dates"),
        ("Toplantı salı günü", "Toplantı çarşamba günü", "numbers or dates"),
        ("Ο Νίκος έχει δύο γάτες", "Ο Νίκος έχει τρεις γάτες", "numbers or dates"),
        ("Mötet är på måndag", "Mötet är på tisdag", "numbers or dates"),
        ("Lan có hai con mèo", "Lan có ba con mèo", "numbers or dates"),
        ("De vergadering is in juni", "De vergadering is in juli", "numbers or dates"),
        ("Alice likes fish", "Alice does not like fish", "negation"),
        ("Alice can come", "Alice can't come", "negation"),
        ("Dora trinkt Kaffee", "Dora trinkt keinen Kaffee", "negation"),
        ("Luis come carne", "Luis no come carne", "negation"),
        ("Alice mange de la viande", "Alice ne mange jamais de la viande", "negation"),
        ("Иван ест мясо", "Иван не ест мясо", "negation"),
        ("他喜欢咖啡", "他不喜欢咖啡", "negation"),
        ("Lan thích cà phê", "Lan không thích cà phê", "negation"),
        ("Ștefan bea cafea", "Ștefan nu bea cafea", "negation"),
        ("Ο Νίκος τρώει κρέας", "Ο Νίκος δεν τρώει κρέας", "negation"),
        ("Ο Νίκος πίνει καφέ με ζάχαρη", "Ο Νίκος πίνει καφέ χωρίς ζάχαρη", "negation"),
        ("Budi suka kopi", "Budi tidak suka kopi", "negation"),
        ("Pekka syö lihaa", "Pekka ei syö lihaa", "negation"),
        ("Dora isst alles mit Fisch", "Dora isst alles außer Fisch", "negation"),
        ("Alice smokes", "Alice stopped smoking", "negation"),
        ("Alice likes opera", "Alice dislikes opera", "negation"),
        ("The invoice is paid", "The invoice is unpaid", "negation"),
        ("Ann ist unglücklich", "Ann ist glücklich", "negation"),
        ("De rekening is betaald", "De rekening is onbetaald", "negation"),
        ("Jana pije kávu", "Jana nepije kávu", "negation"),
        ("Иван женат", "Иван неженат", "negation"),
        ("Alice works for Acme", "Alice works for Globex", "names"),
        ("Alice lives in Paris", "Bob lives in Paris", "names"),
        ("The meeting is on Monday", "The meeting is on Tuesday", "names"),
        ("The server is called db-01", "The server is called db-02", "names"),
        ("Write to ann@example.com", "Write to bob@example.com", "names"),
        ("田中さんは東京に住んでいる", "鈴木さんは東京に住んでいる", "names"),
        ("मीना को चाय पसंद है", "मोना को चाय पसंद है", "names"),
        ("สมชายชอบหมี", "สมชายชอบหมู", "names"),
        ("Alice manages Bob", "Bob manages Alice", "who does what"),
        ("Alice flew from Paris to Berlin", "Alice flew from Berlin to Paris", "who does what"),
        ("the cat chased the dog", "the dog chased the cat", "who does what"),
    ],
)
def test_a_contradiction_is_a_difference(old: str, new: str, kind: str) -> None:
    assert kind in differences(old, new)
    assert kind in differences(new, old)


words = st.sampled_from(["Alice", "Bob", "likes", "tea", "not", "no", "2", "3", "two", "never", "the", "Paris", "不"])
texts = st.text(max_size=60) | st.lists(words, max_size=10).map(" ".join)
numbers = st.integers(min_value=0, max_value=10**6)


@given(texts)
def test_nothing_differs_from_itself(text: str) -> None:
    assert differences(text, text) == []
    assert overlap(text, text) == 1.0


@given(texts, texts)
def test_it_does_not_matter_which_one_is_older(old: str, new: str) -> None:
    assert differences(old, new) == differences(new, old)
    assert overlap(old, new) == overlap(new, old)


@given(texts, numbers, numbers)
def test_another_number_never_goes_unnoticed(text: str, old: int, new: int) -> None:
    noticed = "numbers or dates" in differences(f"{text} costs {old} euros", f"{text} costs {new} euros")
    assert noticed == (old != new)


@given(st.sampled_from(["not", "never", "nicht", "no", "jamais", "nunca", "не"]), texts)
def test_a_new_negation_never_goes_unnoticed(word: str, text: str) -> None:
    assert "negation" in differences(f"Alice likes {text}", f"Alice {word} likes {text}")


def test_a_long_text_is_no_trouble() -> None:
    assert differences("a/b@c " * 5_000, "A1 " * 10_000) != []
