"""Common words of large instances, estimated from a sample by a job."""

import pytest

from instances.models import Instance
from instances.store import InstanceChanges, change_instance
from memories import jobs
from memories.draft import MemoryDraft
from memories.models import WordFrequency
from memories.search import word_frequencies
from memories.search.word_frequencies import ALL, count_words
from memories.store import save_many
from tests.factories import make_instance, make_memory, scope_of

pytestmark = pytest.mark.django_db


def fill(instance: Instance, number: int, said: str = "Alice said hello") -> None:
    save_many(scope_of(instance), [MemoryDraft(content=f"{said} unique{n}x{number}") for n in range(number)])


def counted(instance: Instance) -> dict[str, int]:
    return dict(WordFrequency.objects.filter(instance=instance).values_list("word", "chunks"))


def test_common_words_are_counted_and_rare_ones_are_not(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_frequencies, "COMMON", 0.02)
    other = make_instance("sales-bot")
    fill(other, 5, "Bob whispers")
    fill(bot, 100)
    fill(bot, 10, "Bob shouted")
    count_words(scope_of(bot))
    assert counted(bot) == {"alic": 100, "said": 100, "hello": 100, "bob": 10, "shout": 10, ALL: 110}
    assert counted(other) == {}


def test_counting_again_replaces(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(bot, 10)
    count_words(scope_of(bot))
    monkeypatch.setattr(word_frequencies, "COMMON", 0.5)
    fill(bot, 5)
    count_words(scope_of(bot))
    assert counted(bot) == {"alic": 15, "said": 15, "hello": 15, ALL: 15}


def test_a_sample_is_scaled_to_the_whole(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_frequencies, "SAMPLE", 200)
    fill(bot, 1000)
    fill(bot, 500, "Bob shouted")
    count_words(scope_of(bot))
    words = counted(bot)
    assert words["alic"] == pytest.approx(1000, rel=0.3)
    assert words["bob"] == pytest.approx(500, rel=0.4)


def test_an_empty_instance(bot: Instance) -> None:
    count_words(scope_of(bot))
    assert counted(bot) == {ALL: 0}


def test_the_job_counts_large_instances_that_have_changed(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "ALL_WORDS_UP_TO", 9)
    small = make_instance("small-bot")
    fill(small, 9)
    fill(bot, 20)
    jobs.count_common_words(0)
    assert (counted(small), counted(bot)[ALL], counted(bot)["alic"]) == ({}, 20, 20)
    make_memory(bot)
    jobs.count_common_words(0)
    assert counted(bot)[ALL] == 20, "one more is no change worth counting"
    fill(bot, 3)
    jobs.count_common_words(0)
    assert (counted(bot)[ALL], counted(bot)["alic"]) == (24, 23)


def test_another_language_has_other_common_words(bot: Instance) -> None:
    fill(bot, 10, "Alice bakes cakes")
    count_words(scope_of(bot))
    change_instance(scope_of(bot), InstanceChanges(language="simple"))
    jobs.use_language_now(str(bot.id))
    assert counted(bot).keys() >= {"alice", "bakes", "cakes"}
    other = make_instance("sales-bot")
    jobs.use_language_now(str(other.id))
    assert counted(other) == {}, "too small to be counted"


def test_the_job_leaves_what_has_not_changed(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "ALL_WORDS_UP_TO", 9)
    fill(bot, 20)
    jobs.count_common_words(0)
    WordFrequency.objects.filter(instance=bot, word="alic").delete()
    jobs.count_common_words(0)
    assert "alic" not in counted(bot), "counting again would have brought it back"
