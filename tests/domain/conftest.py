import pytest

from instances.models import Instance
from memories import backfill
from memories import search as searching
from tests.factories import make_instance


@pytest.fixture
def bot(db: None) -> Instance:
    """With vectors and a language model where a test asks for `openai` too."""
    return make_instance("support-bot")


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


def searched_as(size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, whatever the number of memories is."""
    monkeypatch.setattr(searching, "EXACT_UP_TO", 2_000 if size == "small" else 0)
    monkeypatch.setattr(searching, "ALL_WORDS_UP_TO", 5_000 if size in ("small", "middle") else 0)
