"""One PostgreSQL for all tests: the embedded server, in a temporary directory."""

import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import django
import pytest
from django.db import connection

from tests.environment import DATA_DIR, IS_WORKER
from tests.openai_server import GOOD_KEY, OpenAIServer

# Other conftests import models, and pytest may import them before pytest-django sets Django up.
django.setup()


def pytest_configure(config: pytest.Config) -> None:
    from django.conf import settings

    from memoryconsole import embedded

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # The first process starts it and outlives the xdist workers, which end without exit handlers.
    if not IS_WORKER:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        embedded.ensure_running()


def pytest_unconfigure(config: pytest.Config) -> None:
    from memoryconsole import embedded

    if not IS_WORKER:
        embedded.server().stop("immediate")
        discard(DATA_DIR)


def discard(data_dir: Path) -> None:
    """Remove a data directory and, where root keeps it elsewhere, its cluster."""
    cluster = (data_dir / "postgres").resolve()
    shutil.rmtree(data_dir, ignore_errors=True)
    shutil.rmtree(cluster, ignore_errors=True)


@pytest.fixture(autouse=True)
def empty_queue(request: pytest.FixtureRequest, django_db_blocker: Any) -> Iterator[None]:
    """Empty the queue after tests that commit, because Django only empties tables of its own models."""
    yield
    marker = request.node.get_closest_marker("django_db")
    if marker and marker.kwargs.get("transaction"):
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute("TRUNCATE procrastinate_jobs CASCADE")


@pytest.fixture
def storage(tmp_path: Path, settings: Any) -> Path:
    """A directory for uploaded files, for this test alone."""
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


@pytest.fixture
def one_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count requests from zero and stop the clock, so that the whole test is within one minute."""
    from accounts import throttling

    now = time.time()
    monkeypatch.setattr(throttling, "time", SimpleNamespace(time=lambda: now))
    monkeypatch.setattr(throttling, "_counts", {})


@pytest.fixture
def openai(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """A local OpenAI server that every instance uses, with hardly a pause before a retry."""
    from memories.embedding import embedder
    from memories.learning import llm

    for module, wait in ((embedder, "FIRST_WAIT"), (embedder, "QUICK_WAIT"), (llm, "FIRST_WAIT")):
        monkeypatch.setattr(module, wait, 0.01)
    embedder.forget()
    llm.forget()
    with OpenAIServer() as server:
        settings.OPENAI_BASE_URL = server.url
        settings.OPENAI_API_KEY = GOOD_KEY
        yield server
    embedder.forget()
    llm.forget()
