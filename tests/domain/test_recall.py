"""Recall: what an assistant is told before it answers."""

import pytest

from instances.models import Instance
from memories.backfill import embed_pending
from memories.recall import Recalled, RecallRequest, recall
from memoryconsole.inputs import read
from tests.factories import make_instance, make_memory, scope_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def bot() -> Instance:
    return make_instance("support-bot", embedder="offline")


def ask(instance: Instance, query: str = "", **request: object) -> Recalled:
    embed_pending(scope_of(instance))
    return recall(scope_of(instance), read(RecallRequest, {"query": query, **request}))


def test_one_block_by_role(bot: Instance) -> None:
    make_memory(bot, "Alice lives in Bern", key="home")
    make_memory(bot, "Never deploy on Fridays", role="lesson", key="deploy")
    make_memory(bot, "The office is closed in August", role="reference")
    recalled = ask(bot, "Where does Alice live?")
    assert recalled.context == (
        "<memory-context>\n"
        "[LESSON] [deploy]: Never deploy on Fridays\n"
        "[CONTEXT] [home]: Alice lives in Bern\n"
        "</memory-context>"
    )
    assert (recalled.mode, recalled.reason) == ("hybrid", "")
    assert [given.why for given in recalled.memories] == ["injected", "found"]
    assert [(dropped.reason, dropped.memory.role) for dropped in recalled.dropped] == [("threshold", "reference")]
