"""Search keeps to what is in quotes, and leaves out what a dash excludes, as far as that is what was meant."""

import pytest

from instances.models import Instance
from memories.search import hybrid as searching
from tests.domain.looking import embed, find, texts
from tests.factories import make_conversation, make_memory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("size")]


def test_a_phrase_must_be_there(bot: Instance) -> None:
    make_memory(bot, "Green tea is hot")
    make_memory(bot, "Tea is green")
    assert texts(find(bot, '"green tea"')) == ["Green tea is hot"]
    assert texts(find(bot, '"green teas"')) == ["Green tea is hot"], "in any form of its words"
    assert find(bot, '"tea green"').hits == []


def test_a_question_quotes_what_it_asks_about(bot: Instance) -> None:
    make_memory(bot, "Alice read Becoming in May")
    assert texts(find(bot, 'When did Alice read "Becoming Nicole"?')) == ["Alice read Becoming in May"]
    assert find(bot, '"Becoming Nicole"?').hits == [], "but for a question that is nothing else"


def test_a_phrase_is_found_in_another_spelling(bot: Instance) -> None:
    make_memory(bot, "قال أحمد: الشّاي الأخضر")
    make_memory(bot, "الأخضر هو الشاي")
    assert texts(find(bot, '"الشاي الاخضر"')) == ["قال أحمد: الشّاي الأخضر"]


def test_phrases_may_be_alternatives(bot: Instance) -> None:
    make_memory(bot, "Green tea is hot")
    make_memory(bot, "Black coffee is hot")
    make_memory(bot, "Milk is hot")
    assert set(texts(find(bot, 'hot "green tea" or "black coffee"'))) == {"Green tea is hot", "Black coffee is hot"}
    assert find(bot, 'hot "green tea" "black coffee"').hits == []
    assert set(texts(find(bot, 'hot "green tea" or milk'))) == {"Green tea is hot", "Milk is hot"}
    assert len(find(bot, "tea or coffee").hits) == 2


def test_phrases_may_stand_in_different_chunks(bot: Instance) -> None:
    filling = "\n\n".join("Bears sleep all winter long. " * 20 for _ in range(4))
    memory = make_memory(bot, f"The red apple.\n\n{filling}\n\nThe blue pear.")
    assert [hit.memory.id for hit in find(bot, '"red apple" "blue pear"').hits] == [memory.id]
    assert find(bot, '"red apple" -pear').hits == [], "what is excluded may not stand anywhere in it"


def test_a_word_can_be_excluded(hashed: Instance) -> None:
    make_memory(hashed, "Tea with milk")
    make_memory(hashed, "Tea with lemon")
    embed(hashed)
    for mode in ("hybrid", "keyword", "vector"):
        assert texts(find(hashed, "tea -milk", mode=mode)) == ["Tea with lemon"]
        assert texts(find(hashed, 'tea -"with lemon"', mode=mode)) == ["Tea with milk"]


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_an_exclusion_alone_finds_nothing_and_says_why(hashed: Instance, mode: searching.Mode) -> None:
    make_memory(hashed, "Tea with milk")
    embed(hashed)
    found = find(hashed, '-milk -"with lemon"', mode=mode)
    assert (found.hits, found.code) == ([], "only_excludes")
    assert found.reason == "This only says what to leave out. Add words to look for."


@pytest.mark.parametrize(("query", "found"), [('"绿茶好"', ["我说绿茶好喝"]), ("喝 -绿茶好", ["他喝红茶"])])
def test_operators_work_without_spaces(bot: Instance, query: str, found: list[str]) -> None:
    make_memory(bot, "我说绿茶好喝")
    make_memory(bot, "他喝红茶")
    assert texts(find(bot, query)) == found


def test_neighbours_keep_to_the_conditions(bot: Instance) -> None:
    conversation = make_conversation(bot)
    for content in ("The red apple", "A pear with anchovy", "Nothing of note"):
        make_memory(bot, content, sourceConversationId=str(conversation.id))
    assert texts(find(bot, '"red apple"')) == ["The red apple"]
    assert "A pear with anchovy" not in texts(find(bot, "apple -anchovy"))
