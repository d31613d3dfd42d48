import os
import re
from pathlib import Path
from typing import Any

import pytest

from memories.models import Memory
from tests.commands.conftest import Shell
from tests.factories import make_memory

pytestmark = pytest.mark.usefixtures("support_bot")
NOBODY = "01988f5e-4b7c-7e1a-9c64-2f0d3b8a5c11"
DOCS = Path(__file__).parents[2] / "docs" / "commands.md"


@pytest.mark.parametrize("action", [["add", "fact", "x"], ["list"], ["show", NOBODY], ["delete", "--all"]])
@pytest.mark.parametrize(("slug", "code"), [("nobody", 3), ("../x", 3), ("", 2)])
def test_it_must_exist(shell: Shell, action: list[str], slug: str, code: int):
    ran = shell("memory", *action, "--instance", slug)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err


@pytest.mark.parametrize("action", [["add", "fact", "x"], ["list"], ["show", NOBODY], ["delete", "--all"]])
def test_it_must_be_named(shell: Shell, action: list[str]):
    ran = shell("memory", *action)
    assert (ran.code, ran.out) == (2, "")
    assert "--instance" in ran.err


def test_two_instances_do_not_see_each_other(shell: Shell, support_bot: Any, sales_bot: Any):
    secret = make_memory(support_bot, "Only support knows this")
    assert shell("memory", "list", "--instance", "sales-bot", "--json").json["memories"] == []
    shown = shell("memory", "show", str(secret.id), "--instance", "sales-bot")
    gone = shell("memory", "delete", str(secret.id), "--instance", "sales-bot", "--yes")
    everything = shell("memory", "delete", "--all", "--yes", "--instance", "sales-bot")
    assert (shown.code, gone.code, everything.code) == (3, 3, 1)
    assert shown.err == gone.err == "There is no such memory in this instance.\n"
    assert Memory.objects.get() == secret


def test_every_option_is_in_the_documentation(shell: Shell):
    text = DOCS.read_text()
    for action in ("add", "list", "search", "show", "delete"):
        for option in re.findall(r"--[a-z][a-z-]+", shell("memory", action, "--help").out):
            assert option in text, option


@pytest.mark.parametrize("action", ["add", "list", "search", "recall", "show", "delete", "export", "import"])
def test_help_names_nothing_of_the_code(shell: Shell, action: str):
    assert re.findall(r"\w+_\w+", shell("memory", action, "--help").out) == []


def test_an_action_is_needed(shell: Shell):
    assert shell("memory").code == 2
    assert shell("memory", "forget").code == 2


def test_a_reader_that_goes_away_is_no_error(shell: Shell, support_bot: Any, monkeypatch: pytest.MonkeyPatch):
    """`memory list | head -1`, with a pipe whose other end is closed."""
    make_memory(support_bot)
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as closed:
        monkeypatch.setattr("sys.stdout", closed)
        ran = shell("memory", "list", "--instance", "support-bot")
    assert (ran.code, "Traceback" in ran.err) == (0, False)
