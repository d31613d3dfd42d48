import re
from typing import Any

import pytest

from memories.filters import Filters
from tests.commands.conftest import Shell
from tests.factories import make_memories, make_memory

pytestmark = pytest.mark.usefixtures("support_bot")


def ask(shell: Shell, *words: str, **how: Any) -> Any:
    return shell("memory", "list", "--instance", "support-bot", *words, **how)


def found(shell: Shell, *words: str) -> list[str]:
    return [memory["content"] for memory in ask(shell, "--json", *words).json["memories"]]


def test_plain_lines_newest_first(shell: Shell, support_bot: Any):
    make_memory(support_bot, "Older", category="relationship", importance=10, pinned=True)
    make_memory(support_bot, "Newer\n\twith a second line")
    ran = ask(shell)
    header, newer, older = ran.out.splitlines()
    assert (ran.code, ran.err) == (0, "2 of 2 memories in support-bot.\n")
    assert newer.endswith("  Newer with a second line")
    assert older.split()[1:4] == ["relationship", "10", "pinned"]
    assert header.index("CONTENT") == newer.index("Newer") == older.index("Older")
    assert "\t" not in ran.out
    assert "\x1b" not in ran.out


def test_json_is_what_the_api_answers(shell: Shell, support_bot: Any):
    make_memories(support_bot, 3)
    answer = ask(shell, "--json", "--limit", "2").json
    assert (answer["total"], answer["limit"], answer["offset"]) == (3, 2, 0)
    assert answer["searchMode"] is None
    rest = ask(shell, "--json", "--cursor", answer["nextCursor"]).json
    assert len(rest["memories"]) == 1
    assert rest["nextCursor"] is None


def test_the_next_part_is_offered(shell: Shell, support_bot: Any):
    make_memories(support_bot, 3)
    assert ask(shell, "--limit", "2").err == "2 of 3 memories in support-bot. More: --offset 2\n"
    assert ask(shell, "--limit", "2", "--offset", "2").err == "1 of 3 memories in support-bot.\n"


def test_every_filter_of_the_api_is_an_option(shell: Shell):
    for action in ("list", "delete"):
        text = shell("memory", action, "--help").out
        for name in Filters.model_fields:
            assert f"--{name.replace('_', '-')}" in text


@pytest.mark.parametrize(
    "words",
    [
        ["--category", "event"],
        ["--role", "lesson"],
        ["--role", "warning"],
        ["--tag", "a", "--tag", "b"],
        ["--source", "crm"],
        ["--owner", "alice"],
        ["--visibility", "team"],
        ["--pinned"],
        ["--min-importance", "9"],
        ["--occurred-after", "2026-05-01"],
        ["--category", "event", "--min-importance", "9", "--pinned"],
    ],
)
def test_filters_narrow(shell: Shell, support_bot: Any, words: list[str]):
    make_memory(support_bot, "Other", tags=["a"], occurredAt="2026-04-30T00:00:00Z")
    wanted = {"category": "event", "role": "lesson", "tags": ["a", "b"], "source": "crm", "owner": "alice"}
    more = {"visibility": "team", "pinned": True, "importance": 9, "occurredAt": "2026-05-02T00:00:00Z"}
    make_memory(support_bot, "Wanted", **wanted, **more)
    assert found(shell, *words) == ["Wanted"]


def test_not_pinned(shell: Shell, support_bot: Any):
    make_memory(support_bot, "Pinned", pinned=True)
    make_memory(support_bot, "Loose")
    assert found(shell, "--no-pinned") == ["Loose"]


def test_nothing_is_fine_too(shell: Shell):
    ran = ask(shell)
    assert (ran.code, ran.out, ran.err) == (0, "", "Nothing in support-bot matches.\n")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--limit", "0"], "--limit: Must be at least 1."),
        (["--limit", "101"], "--limit: Must be at most 100."),
        (["--limit", "few"], "--limit: Enter a whole number."),
        (["--offset", "-1"], "--offset: Must be at least 0."),
        (["--offset", "10001"], "--offset: Must be at most 10000."),
        (["--category", "color"], "--category: “color” is not a category."),
        (["--min-importance", "11"], "--min-importance: Must be at most 10."),
        (["--created-after", "soon"], "--created-after: Enter a date and time"),
        (["--conversation-id", "7"], "--conversation-id: This is not an id."),
        (["--embedding", "done"], "--embedding: “done” is not known. Choose one of:"),
        (["--cursor", "abc"], "--cursor: This cursor is not valid here."),
    ],
)
def test_bad_filters(shell: Shell, words: list[str], complaint: str):
    ran = ask(shell, *words)
    assert (ran.code, ran.out) == (2, "")
    assert complaint in ran.err


def test_a_table_with_colours_on_a_terminal(shell: Shell, support_bot: Any, monkeypatch: pytest.MonkeyPatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "70")
    memory = make_memory(support_bot, "[bold]Brackets[/bold] are text " * 20, category="event", tags=["a"])
    coloured = ask(shell, terminal=True).out
    assert "\x1b[33mevent" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert "[bold]Brackets[/bold]" in plain
    assert str(memory.id) in plain.replace("\n", "").replace(" ", "")
    assert max(len(line) for line in plain.splitlines()) <= 70


def test_no_color_is_respected(shell: Shell, support_bot: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    make_memory(support_bot, "Hello", category="event")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", ask(shell, terminal=True).out)


@pytest.mark.parametrize("terminal", [True, False])
def test_escape_sequences_in_memories_do_not_reach_the_terminal(shell: Shell, support_bot: Any, terminal: bool):
    memory = make_memory(support_bot, "a\x1b]0;owned\x07b\x9b2J", tags=["\x1b[5m"], key="k\x1b[5m")
    for ran in (
        ask(shell, terminal=terminal),
        ask(shell, "--json", terminal=terminal),
        shell("memory", "show", str(memory.id), "--instance", "support-bot", terminal=terminal),
    ):
        assert not re.search(r"\x1b(?!\[[0-9;]*m)|\x1b\[5m|[\x07\x9b]", ran.out)
