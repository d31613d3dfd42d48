from typing import Any

import pytest
from pydantic.alias_generators import to_snake

from memories.models import Memory
from tests.commands.conftest import Shell
from tests.factories import make_memory

pytestmark = pytest.mark.usefixtures("support_bot")
NOBODY = "01988f5e-4b7c-7e1a-9c64-2f0d3b8a5c11"


def show(shell: Shell, *words: str, **how: Any) -> Any:
    return shell("memory", "show", *words, "--instance", "support-bot", **how)


@pytest.mark.parametrize("terminal", [True, False])
def test_the_whole_memory(shell: Shell, support_bot: Any, terminal: bool):
    memory = make_memory(support_bot, "First paragraph\n\nSecond paragraph", key="story", tags=["long"])
    ran = show(shell, str(memory.id), terminal=terminal)
    assert ran.code == 0
    for text in (str(memory.id), "story", "long", "5 of 10", "First paragraph", "Second paragraph"):
        assert text in ran.out


def test_json(shell: Shell, support_bot: Any):
    memory = make_memory(support_bot, "Hello")
    answer = show(shell, str(memory.id), "--json").json["memory"]
    assert (answer["id"], answer["content"]) == (str(memory.id), "Hello")
    assert {to_snake(name) for name in answer} - {"instance_id"} <= {field.attname for field in Memory._meta.fields}


@pytest.mark.parametrize("id", [NOBODY, "7", "not-an-id", ""])
def test_what_is_not_there(shell: Shell, id: str):
    ran = show(shell, id)
    assert (ran.code, ran.out, ran.err) == (3, "", "There is no such memory in this instance.\n")
