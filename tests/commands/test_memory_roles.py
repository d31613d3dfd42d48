"""manage.py memory: roles, their aliases, and the hint about another one"""

import pytest

from memories.models import Memory
from tests.commands.conftest import Shell

pytestmark = pytest.mark.usefixtures("support_bot")


def test_aliases_in_add_and_in_filters(shell: Shell) -> None:
    assert shell("memory", "add", "fact", "Text", "--instance", "support-bot", "--role", "warning").code == 0
    assert Memory.objects.get().role == "lesson"
    for word in ("lesson", "insight", "Learning"):
        listed = shell("memory", "list", "--instance", "support-bot", "--role", word, "--json")
        assert listed.json["total"] == 1
    assert shell("memory", "list", "--instance", "support-bot", "--role", "past", "--json").json["total"] == 0


def test_an_unknown_role_is_named(shell: Shell) -> None:
    ran = shell("memory", "add", "fact", "Text", "--instance", "support-bot", "--role", "boss")
    assert ran.code == 2
    assert "--role: “boss” is not a role. Choose one of: identity," in ran.err


def test_a_hint_is_said_beside_the_answer(shell: Shell) -> None:
    ran = shell("memory", "add", "fact", "Never deploy on Fridays", "--instance", "support-bot")
    assert ran.err == "“Never” sounds like a lesson. If it is one, add: --role lesson\n"
    assert ran.out.startswith("Created ")
    ran = shell("memory", "add", "fact", "Never deploy on Mondays", "--instance", "support-bot", "--json")
    assert [hint["value"] for hint in ran.json["hints"]] == ["lesson"]
