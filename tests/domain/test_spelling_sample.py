"""Known words are fetched once for several searches, and never outlive the memories that contain them."""

from typing import Any

import pytest
from django.db import connection

from instances.models import Instance
from memories.deletion import delete_memory
from memories.models import MAX_CONTENT
from memories.search import spelling
from tests.domain.looking import find
from tests.factories import make_instance, make_memory, scope_of

pytestmark = pytest.mark.django_db


class Samples:
    """How often the words of an instance were fetched."""

    def __init__(self) -> None:
        self.taken = 0

    def __call__(self, execute: Any, sql: str, *rest: Any) -> Any:
        self.taken += "words_before" in sql
        return execute(sql, *rest)


def test_they_are_fetched_once_for_what_is_typed_letter_by_letter(bot: Instance) -> None:
    make_memory(bot, "The invoice is late")
    samples = Samples()
    with connection.execute_wrapper(samples):
        for typed in ("invocie", "invoicce", "invoixe"):
            assert find(bot, typed).corrected == {typed: "invoice"}
    assert samples.taken == 1


def test_what_was_saved_a_moment_ago_is_known(bot: Instance) -> None:
    make_memory(bot, "The invoice is late")
    assert find(bot, "umbrelka").corrected == {}
    make_memory(bot, "An umbrella would help")
    assert find(bot, "umbrelka").corrected == {"umbrelka": "umbrella"}


@pytest.mark.parametrize("said", ["บริษัทมีรายได้เพิ่มขึ้น", "公司第二季度的收入增长了", "매출이늘었습니다"])
def test_a_long_text_without_spaces_leaves_room_for_the_words_of_others(bot: Instance, said: str) -> None:
    make_memory(bot, "The invoice is late")
    make_memory(bot, said * (MAX_CONTENT // len(said)))
    assert find(bot, "invocie").corrected == {"invocie": "invoice"}


def test_each_instance_has_its_own(bot: Instance) -> None:
    other = make_instance("other-bot")
    make_memory(bot, "The invoice is late")
    make_memory(other, "An umbrella would help")
    for _ in range(2):
        assert find(bot, "umbrelka").corrected == {}
        assert find(other, "umbrelka").corrected == {"umbrelka": "umbrella"}


def test_a_deleted_word_is_not_suggested_even_from_an_old_sample(
    bot: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spelling, "LATEST", "SELECT NULL::uuid")
    secret = make_memory(bot, "The invoice is late")
    assert find(bot, "invocie").corrected == {"invocie": "invoice"}
    delete_memory(scope_of(bot), secret.id)
    assert find(bot, "invocie").corrected == {}


def test_a_sample_is_kept_for_a_minute_at_most(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spelling, "SECONDS", -1)
    make_memory(bot, "The invoice is late")
    samples = Samples()
    with connection.execute_wrapper(samples):
        find(bot, "invocie")
        find(bot, "invocie")
    assert samples.taken == 2


def test_only_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spelling, "MOST_SAMPLES", 2)
    for number in range(4):
        bot = make_instance(f"bot-{number}")
        make_memory(bot, "The invoice is late")
        find(bot, "invocie")
    assert len(spelling._samples) == 2
