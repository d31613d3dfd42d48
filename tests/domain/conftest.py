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


@pytest.fixture(params=["small", "large"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Everything twice: the statements for small instances, and those for large ones."""
    if request.param == "large":
        monkeypatch.setattr(searching, "EXACT_UP_TO", 0)
    return str(request.param)
