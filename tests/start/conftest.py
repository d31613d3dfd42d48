import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryconsole.embedded import Server
from tests.conftest import discard
from tests.openai_server import GOOD_KEY, OpenAIServer
from tests.start.console import Console, processes


def data_directory() -> Iterator[Path]:
    """Not pytest's tmp_path: that has a long name, and a socket's path may not be long."""
    path = Path(tempfile.mkdtemp(prefix="mc-"))
    yield path
    if (path / "postgres").exists():
        Server(path, durable=False).stop("immediate")
    discard(path)


data_dir = pytest.fixture(data_directory)
shared_data_dir = pytest.fixture(data_directory, scope="module", name="shared_data_dir")


@pytest.fixture
def reachable_dir() -> Iterator[Path]:
    """A directory that an unprivileged account can enter."""
    path = Path(tempfile.mkdtemp(prefix="mc-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.fixture(scope="module")
def openai() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


@pytest.fixture(scope="module")
def console_with_openai(shared_data_dir: Path, free_port: int, openai: OpenAIServer) -> Iterator[Console]:
    """Its processes may be killed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", openai.url)
        patch.setenv("OPENAI_API_KEY", GOOD_KEY)
        console = Console(shared_data_dir, free_port).wait_until_ready()
        yield console
        for pid in console.family():
            if pid in processes():
                os.kill(pid, signal.SIGKILL)
        console.process.wait()
