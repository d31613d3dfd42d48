import re
from pathlib import Path
from typing import Any

import pytest

from instances.models import Instance
from memories.embedding.backfill import embed_pending
from memories.models import Memory, Recall
from memories.recall.golden import GoldenDraft, save_golden
from tests.commands.conftest import Ran, Shell
from tests.factories import make_instance, make_memory, scope_of

DOCS = Path(__file__).parents[2] / "docs" / "commands.md"


@pytest.fixture(autouse=True)
def bot(db: None) -> Instance:
    return make_instance("support-bot", embedder="offline")


@pytest.fixture
def tea(bot: Instance) -> list[Memory]:
    """Four memories, of which one is expected for a question and another is not."""
    memories = [make_memory(bot, f"Alice likes {drink}", role="reference") for drink in ("tea", "wine", "milk", "rum")]
    embed_pending(scope_of(bot))
    draft = GoldenDraft(query="Does Alice like tea?", expected=[memories[0].id], unexpected=[memories[3].id])
    save_golden(scope_of(bot), draft)
    return memories


def evaluate(shell: Shell, *words: str, **how: Any) -> Ran:
    return shell("evaluate", "--instance", "support-bot", *words, **how)


def test_all_ways_side_by_side(shell: Shell, tea: list[Memory]):
    ran = evaluate(shell, "--limit", "1")
    lines = [re.split(r"  +", line) for line in ran.out.splitlines()]
    assert ran.code == 0
    assert lines[0] == ["SETTINGS", "K", "RECALL@K", "MRR", "NDCG@K", "UNWANTED"]
    assert lines[1] == ["current", "8", "1.000", "1.000", "1.000", "1"]
    assert [line[0] for line in lines[1:5]] == ["current", "meaning alone", "words alone", "changed"]
    assert lines[4] == ["changed", "1", "1.000", "1.000", "1.000", "0"]
    assert lines[6] == ["CURRENT", "MEANING ALONE", "WORDS ALONE", "CHANGED", "QUERY"]
    assert lines[7][0] == "1!"
    assert lines[7][3:] == ["1", "Does Alice like tea?"]


def test_without_changes_three_ways(shell: Shell, tea: list[Memory]):
    assert [one["name"] for one in evaluate(shell, "--json").json["variants"]] == ["current", "vector", "keyword"]


def test_json(shell: Shell, tea: list[Memory]):
    answer = evaluate(shell, "--json", "--threshold", "1").json["variants"]
    current, changed = answer[0], answer[3]
    assert (current["k"], current["recall"], current["mrr"], current["ndcg"], current["unwanted"]) == (8, 1, 1, 1, 1)
    (query,) = current["queries"]
    assert (query["query"], query["recall"], query["missed"]) == ("Does Alice like tea?", 1, [])
    assert query["found"][0] == str(tea[0].id)
    assert query["unwanted"] == [str(tea[3].id)]
    assert changed["name"] == "changed"


def test_it_is_not_logged(shell: Shell, tea: list[Memory]):
    evaluate(shell)
    assert Recall.objects.count() == 0


def test_good_enough_or_not(shell: Shell, bot: Instance, tea: list[Memory]):
    assert evaluate(shell, "--at-least", "0.9").code == 0
    missing = make_memory(bot, "Nothing that anybody asks for", role="reference")
    save_golden(scope_of(bot), GoldenDraft(query="Does Alice like wine?", expected=[missing.id]))
    ran = evaluate(shell, "--at-least", "0.9")
    assert ran.code == 1
    assert ran.err == "Recall@8 of the current settings is 0.500, less than 0.9.\n"
    assert "-" in ran.out.splitlines()[-1]


def test_what_hinders_it_is_said(shell: Shell, bot: Instance, tea: list[Memory]):
    assert evaluate(shell).err == ""
    Instance.objects.filter(id=bot.id).update(memory_enabled=False)
    ran = evaluate(shell, "--json")
    assert (ran.code, ran.err.strip()) == (0, "Memory is switched off for this instance.")
    assert ran.json["variants"][0]["recall"] == 0


def test_nothing_to_evaluate(shell: Shell):
    ran = evaluate(shell)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("support-bot has no golden queries.")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--limit", "0"], "--limit: "),
        (["--budget", "x"], "--budget: "),
        (["--half-life", "0"], "--half-life: "),
        (["--at-least", "2"], "--at-least: "),
        (["--at-least", "x"], "--at-least: "),
    ],
)
def test_wrong_values(shell: Shell, options: list[str], named: str):
    ran = evaluate(shell, *options)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(named)


def test_wrong_usage(shell: Shell):
    assert shell("evaluate").code == 2
    assert shell("evaluate", "--instance", "nobody").code == 3


def test_every_option_is_documented(shell: Shell):
    text, docs = evaluate(shell, "--help").out, DOCS.read_text()
    for option in ("--limit", "--threshold", "--budget", "--half-life", "--mmr", "--at-least"):
        assert option in text
        assert option in docs
