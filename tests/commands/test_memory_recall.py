import re
from pathlib import Path
from typing import Any

import pytest

from instances.models import Instance
from memories.models import Recall
from tests.commands.conftest import Ran, Shell
from tests.factories import make_instance, make_memory

DOCS = Path(__file__).parents[2] / "docs" / "commands.md"
BLOCK = """<memory-context>
[LESSON] [deploy]: Never deploy on Fridays
[CONTEXT] [home]: Alice lives in Bern
</memory-context>
"""


@pytest.fixture(autouse=True)
def bot(db: None) -> Instance:
    bot = make_instance("support-bot")
    make_memory(bot, "Alice lives in Bern", key="home")
    make_memory(bot, "Never deploy on Fridays", key="deploy", role="lesson")
    return bot


def recall(shell: Shell, *words: str, **how: Any) -> Ran:
    return shell("memory", "recall", *words, "--instance", "support-bot", **how)


def test_the_block_and_nothing_else_on_stdout(shell: Shell):
    ran = recall(shell, "Where", "does", "Alice", "live?")
    assert (ran.code, ran.out) == (0, BLOCK)
    assert ran.err.splitlines()[0] == "2 memories, 39 of 2,000 tokens (estimated), by words (keyword)."
    assert ran.err.splitlines()[1].startswith("No OpenAI or Azure key reaches this instance")


def test_on_a_terminal_labels_are_coloured(shell: Shell):
    out = recall(shell, "Alice", terminal=True).out
    assert "\x1b[36m[CONTEXT] [home]:\x1b" in out
    assert re.sub(r"\x1b\[[0-9;]*m", "", out).strip() == BLOCK.strip()


def test_why_each_is_there(shell: Shell, bot: Instance):
    make_memory(bot, "Alice " + "talks and talks " * 50, role="reference")
    lines = recall(shell, "Alice", "--budget", "100", "--explain").out.splitlines()
    assert lines[:4] == BLOCK.splitlines()
    rows = [line.split() for line in lines[6:]]
    assert lines[5].split()[:3] == ["ID", "ROLE", "OUTCOME"]
    assert [(row[1], row[2]) for row in rows] == [("lesson", "injected"), ("context", "found"), ("reference", "budget")]
    out = re.sub(r"\x1b\[[0-9;]*m", "", recall(shell, "Alice", "--explain", terminal=True).out)
    assert "keyword # 1" in out
    assert "injected" in out


def test_json_is_what_the_api_answers(shell: Shell):
    answer = recall(shell, "Alice", "--json", "--explain").json
    assert answer["context"] + "\n" == BLOCK
    assert [memory["why"] for memory in answer["memories"]] == ["injected", "found"]
    assert answer["memories"][1]["explain"]["place"] == 1
    assert (answer["searchMode"], answer["tokenBudget"], answer["recallId"]) == ("keyword", 2000, None)


def test_private_memories_of_the_user(shell: Shell, bot: Instance):
    make_memory(bot, "Alice is shy", visibility="private", owner="alice")
    assert "shy" not in recall(shell, "Alice").out
    assert "shy" in recall(shell, "Alice", "--user", "alice").out


def test_settings_and_filters(shell: Shell, bot: Instance):
    for n in range(5):
        make_memory(bot, f"Alice has {n} cats", role="reference", category="fact")
    out = recall(shell, "Alice", "--limit", "2", "--category", "fact", "--threshold", "0", "--mmr", "1").out
    assert out.count("[REFERENCE]") == 2
    assert "[CONTEXT]" not in out
    assert recall(shell, "cats", "--half-life", "1", "--budget", "100").code == 0


def test_it_is_logged_on_request(shell: Shell):
    recall(shell, "Alice")
    assert Recall.objects.count() == 0
    assert recall(shell, "Alice", "--log", "--json").json["recallId"] == str(Recall.objects.get().id)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--limit", "0"], "--limit: "),
        (["--threshold", "2"], "--threshold: "),
        (["--budget", "9"], "--budget: "),
        (["--half-life", "x"], "--half-life: "),
        (["--mmr", "x"], "--mmr: "),
        (["--category", "food"], "--category: "),
        (["--user", "x" * 201], "--user: "),
    ],
)
def test_wrong_values(shell: Shell, options: list[str], named: str):
    ran = recall(shell, "tea", *options)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(named)


def test_wrong_usage(shell: Shell):
    assert recall(shell).code == 2
    assert shell("memory", "recall", "tea").code == 2
    assert shell("memory", "recall", "tea", "--instance", "nobody").code == 3


def test_every_option_is_documented(shell: Shell):
    docs = DOCS.read_text()
    for option in re.findall(r"--[a-z][a-z-]+", recall(shell, "--help").out):
        assert option in docs, option
