from importlib import import_module

import pytest

from accounts.access import Scope
from instances.models import Instance
from memories.embedding import backfill, embedder
from memories.search import planning
from tests.factories import make_instance, scope_of


@pytest.fixture
def bot(db: None) -> Instance:
    """With vectors and a language model where a test asks for `openai` too."""
    return make_instance("support-bot")


@pytest.fixture
def other(db: None) -> Instance:
    """Another tenant."""
    return make_instance("sales-bot")


@pytest.fixture
def scope(bot: Instance) -> Scope:
    return scope_of(bot)


@pytest.fixture
def hashed(db: None) -> Instance:
    """Vectors without a key: texts are near when they share letters."""
    return make_instance("offline-bot", embedder="offline")


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "BATCH", 4)


@pytest.fixture(params=["small", "middle", "large"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Everything three times: the statements for small instances, for larger ones, and for large ones."""
    searched_as(request.param, monkeypatch)
    return str(request.param)


# Of how many memories all vectors are compared, and all words counted.
SIZES = {"small": (2_000, 5_000), "half": (30, 5_000), "middle": (0, 5_000), "large": (0, 0), "huge": (0, 0)}


def searched_as(size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, whatever the number of memories is."""
    exact, all_words = SIZES[size]
    monkeypatch.setattr(planning, "EXACT_UP_TO", exact)
    monkeypatch.setattr(planning, "ALL_WORDS_UP_TO", all_words)
    monkeypatch.setattr(planning, "WIDE_FROM", 0)


@pytest.fixture
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    import_module("openai.resources.embeddings")  # takes longer than that
    monkeypatch.setattr(embedder, "TEXTS_SECONDS", 0.4)
    monkeypatch.setattr(embedder, "QUERY_SECONDS", 0.4)
