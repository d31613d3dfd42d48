from collections.abc import Iterator
from typing import Any

import pytest

from instances.models import Instance
from memories import embedding, llm
from tests.factories import make_instance
from tests.openai_server import GOOD_KEY, OpenAIServer


@pytest.fixture
def openai(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """A language model and an embedder, which reach every instance."""
    monkeypatch.setattr(embedding, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(llm, "FIRST_WAIT", 0.01)
    embedding.forget()
    llm.forget()
    with OpenAIServer() as server:
        settings.OPENAI_BASE_URL = server.url
        settings.OPENAI_API_KEY = GOOD_KEY
        yield server
    embedding.forget()
    llm.forget()


@pytest.fixture
def bot(openai: OpenAIServer) -> Instance:
    return make_instance("support-bot")
