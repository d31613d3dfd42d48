import re
from pathlib import Path
from typing import Any

import pytest

from instances.models import Instance
from memories.draft import MemoryChanges
from memories.embedding.backfill import embed_pending
from memories.filters import Filters
from memories.store import change
from tests.commands.conftest import Ran, Shell
from tests.factories import make_instance, make_memory, scope_of

DOCS = Path(__file__).parents[2] / "docs" / "commands.md"


@pytest.fixture(autouse=True)
def bot(db: None) -> Instance:
    return make_instance("support-bot")


@pytest.fixture
def hashed(bot: Instance) -> Instance:
    Instance.objects.filter(pk=bot.pk).update(embedder="offline")
    return Instance.objects.get(pk=bot.pk)


def search(shell: Shell, *words: str, **how: Any) -> Ran:
    return shell("memory", "search", *words, "--instance", "support-bot", **how)


def test_plain_lines_the_best_first(shell: Shell, bot: Instance):
    other = make_memory(bot, "Alice likes\ttea [and] coffee")
    best = make_memory(bot, "Green tea is\nhot", category="fact", importance=8)
    make_memory(bot, "Something else")
    ran = search(shell, "green", "tea")
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert lines[0].split() == ["ID", "CATEGORY", "IMP", "SCORE", "CONTENT"]
    assert [line.split()[0] for line in lines[1:]] == [str(best.id), str(other.id)]
    assert re.fullmatch(rf"{best.id}  fact      8    0\.\d{{4}}  Green tea is hot", lines[1])
    assert "\t" not in ran.out


def test_it_says_how_it_searched_and_why(shell: Shell, bot: Instance):
    make_memory(bot, "Green tea")
    err = search(shell, "tea").err.splitlines()
    assert err[0] == "1 of 1 memory in support-bot, by words (keyword)."
    assert err[1].startswith("No OpenAI or Azure key reaches this instance")
    assert search(shell, "tea", "--mode", "keyword").err == "1 of 1 memory in support-bot, by words (keyword).\n"


def test_by_words_and_meaning(shell: Shell, hashed: Instance):
    make_memory(hashed, "Green tea")
    embed_pending(scope_of(hashed))
    assert search(shell, "tea").err == "1 of 1 memory in support-bot, by words and meaning (hybrid).\n"
    assert search(shell, "tea", "--mode", "vector").err == "1 of 1 memory in support-bot, by meaning (vector).\n"


def test_a_table_for_people(shell: Shell, bot: Instance):
    memory = make_memory(bot, "Green [bold]tea[/bold] \x1b[31m <b>& co</b>", category="fact", tags=["hot"])
    out = search(shell, "tea", terminal=True).out
    assert "\x1b[31m <b>" not in out
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
    assert "Green [bold]tea[/bold] \\x1b[31m <b>& co</b>" in plain
    assert str(memory.id) in plain
    assert "#hot" in plain
    assert re.search(r"\x1b\[1;4mtea\x1b", out), "the words that were found stand out"


def test_why_it_was_found(shell: Shell, hashed: Instance):
    make_memory(hashed, "Green tea")
    embed_pending(scope_of(hashed))
    lines = search(shell, "green tea", "--explain").out.splitlines()
    assert lines[0].split() == [
        "ID", "CATEGORY", "IMP", "SCORE", "VECTOR", "COSINE", "KEYWORD", "CONTEXT", "WORDS", "CONTENT",
    ]  # fmt: skip
    assert lines[1].split()[4:9] == ["1", "1.000", "1", "1", "green,tea"]
    out = re.sub(r"\x1b\[[0-9;]*m", "", search(shell, "green tea", "--explain", terminal=True).out)
    assert "vector #1 (cosine 1.000) 0.0164 + keyword #1 (green, tea) 0.0164 + context #1 0.4918 = 0.5246" in " ".join(
        out.split()
    )


def test_json_is_what_the_api_answers(shell: Shell, bot: Instance):
    memory = make_memory(bot, "Green tea")
    answer = search(shell, "tea", "--json", "--explain").json
    assert (answer["total"], answer["limit"], answer["offset"], answer["searchMode"]) == (1, 20, 0, "keyword")
    assert answer["reason"].startswith("No OpenAI or Azure key")
    (found,) = answer["memories"]
    assert (found["id"], found["snippet"], found["instanceId"]) == (
        str(memory.id),
        "Green <mark>tea</mark>",
        "support-bot",
    )
    assert found["explain"]["keyword"]["matched"] == ["tea"]
    assert "explain" not in search(shell, "tea", "--json").json["memories"][0]


def test_filters_and_pages(shell: Shell, bot: Instance):
    for n in range(3):
        make_memory(bot, f"Tea {n}", category="fact")
    make_memory(bot, "Tea of another kind")
    ran = search(shell, "tea", "--category", "fact", "--limit", "2")
    assert len(ran.out.splitlines()) == 3
    assert "2 of 3 memories in support-bot, by words (keyword). More: --offset 2" in ran.err
    ran = search(shell, "tea", "--category", "fact", "--limit", "2", "--offset", "2")
    assert len(ran.out.splitlines()) == 2
    assert "More" not in ran.err


def test_earlier_texts(shell: Shell, bot: Instance):
    memory = make_memory(bot, "The office is in Bonn")
    change(scope_of(bot), memory.id, MemoryChanges(content="The office is in Bern"))
    assert search(shell, "bonn", "--mode", "keyword").out == ""
    ran = search(shell, "bonn", "--include-superseded", "--mode", "keyword")
    assert "The office is in Bonn" in ran.out
    out = re.sub(r"\x1b\[[0-9;]*m", "", search(shell, "bonn", "--include-superseded", terminal=True).out)
    assert "version 1, replaced" in " ".join(out.split())


def test_a_typo_is_told(shell: Shell, bot: Instance):
    make_memory(bot, "The restaurant")
    assert search(shell, "restuarant", "--mode", "keyword").err.splitlines()[0] == (
        "Nowhere: “restuarant”. Looked for “restaurant” instead."
    )


def test_nothing_found_is_an_answer(shell: Shell, bot: Instance):
    ran = search(shell, "zeppelin", "--mode", "keyword")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "Nothing in support-bot matches, by words (keyword).\n"


@pytest.mark.parametrize("query", ["", " ", "\t"])
def test_nothing_to_look_for(shell: Shell, query: str):
    ran = search(shell, query)
    assert (ran.code, ran.out, ran.err) == (2, "", "QUERY: Say what to look for.\n")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--mode", "magic"], "--mode: "),
        (["--limit", "0"], "--limit: "),
        (["--limit", "101"], "--limit: "),
        (["--offset", "-1"], "--offset: "),
        (["--category", "food"], "--category: "),
        (["--min-importance", "11"], "--min-importance: "),
    ],
)
def test_wrong_values(shell: Shell, options: list[str], named: str):
    ran = search(shell, "tea", *options)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(named)


def test_wrong_usage(shell: Shell):
    assert search(shell).code == 2
    assert shell("memory", "search", "tea").code == 2
    assert shell("memory", "search", "tea", "--instance", "nobody").code == 3


def test_another_instance_is_not_searched(shell: Shell, bot: Instance):
    make_memory(make_instance("sales-bot"), "Green tea")
    assert search(shell, "tea", "--mode", "keyword").out == ""


def test_every_filter_is_an_option_and_documented(shell: Shell):
    text, docs = search(shell, "--help").out, DOCS.read_text()
    assert all(f"--{name.replace('_', '-')}" in text for name in Filters.model_fields)
    for option in re.findall(r"--[a-z][a-z-]+", text):
        assert option in docs, option
