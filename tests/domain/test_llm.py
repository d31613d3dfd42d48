"""Asking the language model: requests, retries, and every failure as a message."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import transaction

from instances.models import Instance
from memories.asking import Unavailable
from memories.learning import llm, prompts
from memories.learning.llm import Unreadable, ask, ask_twice, can_ask, read_json
from memories.learning.prompts import Line
from tests.factories import make_instance
from tests.openai_server import OpenAIServer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("openai")]

PROMPT = prompts.extraction([Line("user", "I like tea", datetime(2026, 5, 12, tzinfo=UTC))], zone=UTC, limit=20)


def test_what_it_is_asked(bot: Instance, openai: OpenAIServer) -> None:
    openai.script({"memories": []})
    answer = ask(bot, PROMPT)
    assert (answer.text, answer.tokens) == ('{"memories": []}', 15)
    (body,) = openai.chats()
    assert body["model"] == "gpt-4o-mini"
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    wanted = body["response_format"]
    assert (wanted["type"], wanted["json_schema"]["strict"]) == ("json_schema", True)
    fact = wanted["json_schema"]["schema"]["properties"]["memories"]["items"]
    assert fact["required"] == ["content", "category", "importance", "messageIndex", "occurredAt", "confidence"]


def test_azure_is_asked_for_its_deployment(openai: OpenAIServer, settings: Any) -> None:
    settings.AZURE_OPENAI_ENDPOINT, settings.AZURE_OPENAI_API_KEY = openai.endpoint, "azure-key"
    azure = make_instance(embedder="azure")
    assert not can_ask(azure)
    with pytest.raises(Unavailable, match="no Azure OpenAI deployment for chat"):
        ask(azure, PROMPT)
    settings.AZURE_OPENAI_CHAT_DEPLOYMENT = "fast-chat"
    assert can_ask(azure)
    ask(azure, PROMPT)
    assert openai.requests[-1].path == "/openai/deployments/fast-chat/chat/completions"
    assert openai.requests[-1].key == "azure-key"


def test_nobody_to_ask(bot: Instance, settings: Any) -> None:
    settings.OPENAI_API_KEY = ""
    assert not can_ask(bot)
    with pytest.raises(Unavailable, match="No OpenAI or Azure key"):
        ask(bot, PROMPT)


@pytest.mark.parametrize(
    ("fault", "code", "requests"),
    [
        ("refused", "refused", 1),
        ("unauthorized", "unauthorized", 1),
        ("not_found", "unknown_model", 1),
        ("rate_limited", "rate_limited", 2),
        ("quota", "rate_limited", 1),
        ("server_error", "server_error", 2),
        ("reset", "unreachable", 2),
        ("bad_json", "bad_answer", 2),
        ("nonsense", "bad_answer", 2),
        ("html", "bad_answer", 2),
    ],
)
def test_failures_are_told_apart(bot: Instance, openai: OpenAIServer, fault: str, code: str, requests: int) -> None:
    openai.fail(fault)
    with pytest.raises(Unavailable) as caught:
        ask(bot, PROMPT)
    assert (caught.value.code, len(openai.requests)) == (code, requests)
    assert "language model" in caught.value.reason or "quota" in caught.value.reason
    assert "I like tea" not in caught.value.reason


def test_a_failure_that_passes_is_not_noticed(bot: Instance, openai: OpenAIServer) -> None:
    openai.fail("server_error", times=1)
    assert ask(bot, PROMPT).tokens == 15


def test_one_that_hangs_is_given_up(bot: Instance, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm, "SECONDS", 0.1)
    openai.fail("hang")
    with pytest.raises(Unavailable, match="in time"):
        ask(bot, PROMPT)


def test_after_a_few_failures_it_is_left_alone(bot: Instance, openai: OpenAIServer) -> None:
    openai.fail("server_error")
    for _ in range(3):
        with pytest.raises(Unavailable):
            ask(bot, PROMPT)
    asked = len(openai.requests)
    with pytest.raises(Unavailable) as caught:
        ask(bot, PROMPT)
    assert (caught.value.code, len(openai.requests)) == ("breaker_open", asked)
    assert caught.value.retry_after


def test_what_it_refuses_keeps_nobody_from_asking_something_else(bot: Instance, openai: OpenAIServer) -> None:
    openai.fail("refused", times=4)
    for _ in range(4):
        with pytest.raises(Unavailable, match="refused"):
            ask(bot, PROMPT)
    assert ask(bot, PROMPT).tokens == 15


def test_never_inside_a_transaction(bot: Instance) -> None:
    with pytest.raises(RuntimeError, match="never inside one"), transaction.atomic():
        ask(bot, PROMPT)


def test_an_unusable_answer_gets_one_more_chance(bot: Instance, openai: OpenAIServer) -> None:
    openai.script("Sorry, I cannot.", {"memories": []})
    assert ask_twice(bot, PROMPT, read_json) == ({"memories": []}, 30)
    first, second = openai.chats()
    assert len(first["messages"]) == 2
    assert "it is not JSON" in second["messages"][2]["content"]
    openai.script("Sorry.", "Sorry again.", {"memories": []})
    with pytest.raises(Unreadable) as caught:
        ask_twice(bot, PROMPT, read_json)
    assert (caught.value.reason, caught.value.tokens, len(openai.chats())) == ("it is not JSON", 30, 4)
