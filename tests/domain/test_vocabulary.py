import pytest

from memories.vocabulary import Category, Role, category_named, role_named


def test_the_six_categories_and_the_six_roles() -> None:
    assert Category.values == ["general", "preference", "fact", "event", "relationship", "decision"]
    assert Role.values == ["identity", "lesson", "decision", "context", "reference", "historical"]


@pytest.mark.parametrize(
    ("word", "role"),
    [
        ("core", "identity"),
        ("self", "identity"),
        ("warning", "lesson"),
        ("insight", "lesson"),
        ("learning", "lesson"),
        ("commitment", "decision"),
        ("choice", "decision"),
        ("active", "context"),
        ("background", "context"),
        ("pointer", "reference"),
        ("link", "reference"),
        ("archive", "historical"),
        ("past", "historical"),
        (" Lesson ", "lesson"),
    ],
)
def test_other_words_for_roles(word: str, role: str) -> None:
    assert role_named(word) == role


def test_a_skill_note_is_a_general_lesson() -> None:
    assert category_named("skill-note") == (Category.GENERAL, Role.LESSON)


def test_an_unknown_word_lists_what_is_allowed() -> None:
    with pytest.raises(ValueError, match="general, preference, fact, event, relationship, decision"):
        category_named("opinion")
    with pytest.raises(ValueError, match="identity, lesson"):
        role_named("boss")


@pytest.mark.parametrize("word", ["", "Ann likes tea. " * 1000, "fact\u202e", "fa\x1bct"])
def test_a_text_in_the_wrong_field_is_not_quoted(word: str) -> None:
    for named in (category_named, role_named):
        with pytest.raises(ValueError, match=r"^This is not a (category|role)\. Choose one of: [a-z, -]+\.$"):
            named(word)
