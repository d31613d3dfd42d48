from typing import Any

import pytest

from memories.models import Memory
from tests.commands.conftest import Shell
from tests.factories import make_memories, make_memory

pytestmark = pytest.mark.usefixtures("support_bot")
NOBODY = "01988f5e-4b7c-7e1a-9c64-2f0d3b8a5c11"


def delete(shell: Shell, *words: str, **how: Any) -> Any:
    return shell("memory", "delete", "--instance", "support-bot", *words, **how)


def test_by_id_with_a_receipt(shell: Shell, support_bot: Any):
    memory, kept = make_memories(support_bot, 2)
    ran = delete(shell, str(memory.id), "--yes")
    assert ran.code == 0
    assert ran.out == "Deleted 1 memory with 0 versions, 1 chunk, 0 vectors and 0 attachments.\n"
    assert Memory.objects.get() == kept


def test_json_receipt(shell: Shell, support_bot: Any):
    first, second = make_memories(support_bot, 2)
    receipt = delete(shell, str(first.id), str(second.id), "--yes", "--json").json
    assert receipt == {"deleted": 2, "versions": 0, "chunks": 2, "embeddings": 0, "attachments": 0}


def test_twice_is_not_found(shell: Shell, support_bot: Any):
    memory = make_memory(support_bot)
    delete(shell, str(memory.id), "--yes")
    assert delete(shell, str(memory.id), "--yes").code == 3


def test_one_unknown_id_deletes_nothing(shell: Shell, support_bot: Any):
    memory = make_memory(support_bot)
    assert delete(shell, str(memory.id), NOBODY, "--yes").code == 3
    assert Memory.objects.exists()


def test_by_filter(shell: Shell, support_bot: Any):
    make_memories(support_bot, 3, category="event")
    kept = make_memory(support_bot, category="fact")
    assert delete(shell, "--category", "event", "--yes").out.startswith("Deleted 3 memories")
    assert Memory.objects.get() == kept


def test_all(shell: Shell, support_bot: Any):
    make_memories(support_bot, 3)
    assert delete(shell, "--all", "--yes", "--json").json["deleted"] == 3


def test_a_wrong_expectation_deletes_nothing(shell: Shell, support_bot: Any):
    make_memories(support_bot, 3)
    ran = delete(shell, "--all", "--yes", "--expected", "1234")
    assert (ran.code, ran.err) == (4, "3 memories match now, not 1,234. Nothing was deleted.\n")
    assert Memory.objects.count() == 3
    assert delete(shell, "--all", "--yes", "--expected", "3").code == 0


def test_nothing_matches(shell: Shell):
    ran = delete(shell, "--category", "event", "--yes")
    assert (ran.code, ran.out, ran.err) == (1, "", "Nothing in support-bot matches; nothing was deleted.\n")


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--include-superseded"],
        ["--owner", ""],
        ["--owner", "", "--category", "event"],
        ["--all", "--category", "event"],
        ["ID", "--category", "event"],
        ["ID", "--all"],
        ["ID", "--expected", "1"],
        ["ID", "--include-superseded"],
    ],
)
def test_it_must_be_clear_what_goes(shell: Shell, support_bot: Any, words: list[str]):
    memory = make_memory(support_bot, category="event")
    ran = delete(shell, *(str(memory.id) if word == "ID" else word for word in words), "--yes")
    assert (ran.code, ran.out) == (2, "")
    assert Memory.objects.exists()


@pytest.mark.parametrize("words", [["ID"], ["--all"], ["--category", "event"]])
def test_without_anybody_to_ask_it_refuses(shell: Shell, support_bot: Any, words: list[str]):
    memory = make_memory(support_bot, category="event")
    ran = delete(shell, *(str(memory.id) if word == "ID" else word for word in words), stdin=b"y\n")
    assert (ran.code, ran.out, ran.err) == (2, "", "There is nobody to ask: add --yes to delete.\n")
    assert Memory.objects.exists()


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"", b"perhaps\n"])
def test_anything_but_yes_is_no(shell: Shell, support_bot: Any, answer: bytes):
    make_memory(support_bot, "Precious")
    ran = delete(shell, "--all", stdin=answer, person=True)
    assert (ran.code, ran.out) == (1, "")
    assert "Precious" in ran.err
    assert "Delete 1 memory for good? [y/N]" in ran.err
    assert Memory.objects.exists()


@pytest.mark.parametrize("answer", [b"y\n", b"Yes\n"])
def test_yes(shell: Shell, support_bot: Any, answer: bytes):
    make_memories(support_bot, 12)
    ran = delete(shell, "--all", stdin=answer, person=True)
    assert ran.code == 0
    assert "… and 2 more" in ran.err
    assert not Memory.objects.exists()
