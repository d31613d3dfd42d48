"""What the compared systems share, a PostgreSQL server and a source of vectors, and which systems still take part."""

import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench import ROOT, Server, analyze, api_key, fresh_console, start_worker, write_result
from console import Console
from embedding_server import EmbeddingServer
from peer_systems import OURS, Failed, Ours, Peer, System

# How many hits every search asks for.
LIMIT = 20


class Comparison:
    """The systems that still take part, and why the others do not."""

    def __init__(self) -> None:
        self.systems: list[System] = []
        self.failures: dict[str, str] = {}

    def start(self, name: str, make: Callable[[], System]) -> None:
        print(f"Starting {name} …", flush=True)
        try:
            self.systems.append(make())
        except Failed as failed:
            self._report(name, failed)

    def each(self, task: Callable[[System], object]) -> None:
        """Run a task for every system. One that fails takes part no longer."""
        for system in list(self.systems):
            try:
                task(system)
            except Failed as failed:
                self.systems.remove(system)
                self._report(system.name, failed)

    def _report(self, name: str, failed: Failed) -> None:
        self.failures[name] = str(failed)
        print(f"{name}: {failed}")

    def close(self) -> None:
        for system in self.systems:
            system.close()


class Setting:
    """One PostgreSQL server, the console on it, databases for the peers, and the vectors for all."""

    def __init__(self, work: Path, python: Path, patience: float) -> None:
        self.work, self.python, self.patience = work, python, patience
        self.embeddings = EmbeddingServer(os.environ.get("OPENAI_BASE_URL", ""), os.environ.get("OPENAI_API_KEY", ""))
        os.environ |= {"OPENAI_BASE_URL": self.embeddings.url, "OPENAI_API_KEY": "sk-bench"}
        fresh_console()
        self.failures: dict[str, str] = {}
        self.versions: dict[str, str] = {}
        key = api_key()
        server = Server(key)
        self.server, self.postgres = server.process.pid, postmaster()
        self.console = Console(f"http://127.0.0.1:{server.port}", key)
        self.has_worker = False

    def embed(self) -> None:
        """Have a worker embed what is saved. It is started only now, so that PostgreSQL has statistics of the rows."""
        analyze()
        if not self.has_worker:
            start_worker()
        self.has_worker = True

    def directory(self, name: str) -> Path:
        path = self.work / name
        path.mkdir()
        return path

    def compare(self, names: Sequence[str], material: Path, *, ours: bool = True) -> Comparison:
        comparison, database = Comparison(), self._database(material.name)
        stored = json.loads((material / "material.json").read_text())
        self.embeddings.load(stored["texts"], material / "vectors.f32")
        self.embeddings.load(stored["questions"], material / "questions.f32")
        if ours:
            comparison.start(OURS, lambda: Ours(self.console, self.server, material, _version(), self.embed))
        for name in names:
            work = self.work / f"{material.name}-{name.replace(' ', '-')}"
            comparison.start(name, partial(Peer, name, self.python, material, work, database, self.patience))
        return comparison

    def end(self, comparison: Comparison) -> None:
        comparison.close()
        self.failures |= comparison.failures
        for system in comparison.systems:
            self.versions |= system.versions

    def write(self, name: str, rows: Sequence[dict[str, Any]], load_before: tuple[float, ...], **more: Any) -> None:
        for system, reason in self.failures.items():
            print(f"{system} was not measured: {reason}")
        load_average = [[round(figure, 1) for figure in load] for load in (load_before, os.getloadavg())]
        about = {"versions": self.versions, "not_measured": self.failures, "load_average": load_average}
        write_result(name, rows, **about, **more)

    def _database(self, name: str) -> str:
        """Create a database for the peers: as the console's, but with more memory for building indexes."""
        from django.db import connection

        name = f"peers_{name.replace('-', '_')}"
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
            cursor.execute(f"ALTER DATABASE {name} SET maintenance_work_mem = '1GB'")
        server = connection.get_connection_params()
        return f"postgresql://{server['user']}@/{name}?host={server['host']}&port={server['port']}"


def postmaster() -> int:
    """The process id of the PostgreSQL server, which is the first line of its pid file."""
    from django.conf import settings

    return int((settings.DATA_DIR / "postgres" / "data" / "postmaster.pid").read_text().splitlines()[0])


def _version() -> str:
    import tomllib

    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
