from typing import Any

import pytest

from instances.models import Instance
from memories.embedding import backfill, embedder
from memories.models import Embedding, Memory
from tests.commands.conftest import Shell
from tests.factories import make_instance, make_memories, make_memory
from tests.openai_server import OpenAIServer


@pytest.fixture
def bot(db: None) -> Instance:
    return make_instance("support-bot")


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "ATTEMPTS", 1)
    monkeypatch.setattr(backfill, "BATCH", 4)


def run(shell: Shell, *words: str, **how: Any) -> Any:
    return shell("embedmemories", "--instance", "support-bot", *words, **how)


def test_lines_for_scripts(shell: Shell, bot: Instance, openai: OpenAIServer):
    make_memories(bot, 10)
    ran = run(shell)
    assert (ran.code, ran.out) == (0, "Made 10 vectors with text-embedding-3-small.\n")
    assert ran.err == "4 of 10\n8 of 10\n10 of 10\n"
    assert Memory.objects.filter(embedding="ready").count() == 10


def test_a_bar_for_people(shell: Shell, bot: Instance, openai: OpenAIServer):
    make_memories(bot, 10)
    ran = run(shell, terminal=True)
    assert (ran.code, ran.out) == (0, "Made 10 vectors with text-embedding-3-small.\n")
    assert "10/10" in ran.err
    assert "━" in ran.err


def test_again_there_is_nothing_to_do(shell: Shell, bot: Instance, openai: OpenAIServer):
    make_memories(bot, 1)
    run(shell)
    ran = run(shell, terminal=True)
    assert (ran.code, ran.out, ran.err) == (0, "Every memory of support-bot has its vectors.\n", "")


def test_a_limit(shell: Shell, bot: Instance, openai: OpenAIServer):
    make_memories(bot, 10)
    assert run(shell, "--limit", "3").out == "Made 3 vectors with text-embedding-3-small. 7 still have none.\n"
    assert Embedding.objects.count() == 3
    assert run(shell, "--limit", "100", "--json").json == {
        "embedded": 7, "missing": 0, "refused": 0, "model": "text-embedding-3-small",
    }  # fmt: skip


def test_the_offline_embedder_needs_no_key(shell: Shell, db: None):
    bot = make_instance("support-bot", embedder="offline")
    make_memories(bot, 2)
    assert run(shell).out == "Made 2 vectors with offline-hash-1.\n"


def test_without_a_key_it_says_what_to_do(shell: Shell, bot: Instance):
    make_memories(bot, 1)
    ran = run(shell)
    assert (ran.code, ran.out) == (1, "")
    assert "No OpenAI or Azure key reaches this instance" in ran.err
    assert "offline embedder" in ran.err


def test_when_the_api_fails_half_way(shell: Shell, bot: Instance, openai: OpenAIServer):
    make_memories(bot, 10)
    openai.fail("slow", times=2, seconds=0)
    openai.fail("server_error")
    ran = run(shell)
    made = Embedding.objects.count()
    # Batches are asked for side by side, and the third request may be for any of them.
    assert made in {6, 8}
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.endswith(f"The embeddings API failed with status 500. {made} vectors made before that will stay.\n")
    openai.recover()
    assert run(shell).out == f"Made {10 - made} vectors with text-embedding-3-small.\n"


def test_what_was_refused_is_tried_again(shell: Shell, bot: Instance, openai: OpenAIServer):
    make_memories(bot, 1)
    Memory.objects.update(embedding="failed", embedding_error="refused")
    assert run(shell).out == "Made 1 vector with text-embedding-3-small.\n"


def test_what_is_refused_is_a_failure(shell: Shell, bot: Instance, openai: OpenAIServer):
    make_memories(bot, 3)
    make_memory(bot, "The forbidden fruit")
    openai.refuse("forbidden")
    ran = run(shell)
    assert (ran.code, ran.out) == (1, "Made 3 vectors with text-embedding-3-small.\n")
    assert "Refused by the embeddings API: 1 vector." in ran.err
    again = run(shell, "--json")
    assert again.code == 1
    assert again.json == {"embedded": 0, "missing": 0, "refused": 1, "model": "text-embedding-3-small"}


@pytest.mark.parametrize("limit", ["0", "-1", "many", "1.5", "99999999999"])
def test_wrong_limits(shell: Shell, bot: Instance, limit: str):
    ran = run(shell, f"--limit={limit}")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("--limit: ")


def test_wrong_instances(shell: Shell, bot: Instance):
    assert shell("embedmemories").code == 2
    ran = shell("embedmemories", "--instance", "nobody")
    assert (ran.code, ran.err) == (3, "There is no instance “nobody”.\n")
