"""One machine for all who are compared: one PostgreSQL server, one source of vectors, and who is still in the race."""

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

# Of every search.
MOST = 20


class Comparison:
    """The systems that are still in the race, and why the others are not."""

    def __init__(self) -> None:
        self.systems: list[System] = []
        self.failures: dict[str, str] = {}

    def enter(self, name: str, make: Callable[[], System]) -> None:
        print(f"Starting {name} …", flush=True)
        try:
            self.systems.append(make())
        except Failed as failed:
            self.failures[name] = str(failed)
            print(f"{name}: {failed}")

    def each(self, work: Callable[[System], object]) -> None:
        """Whoever fails is out, and said to be."""
        for system in list(self.systems):
            try:
                work(system)
            except Failed as failed:
                self.systems.remove(system)
                self.failures[system.name] = str(failed)
                print(f"{system.name}: {failed}")

    def close(self) -> None:
        for system in self.systems:
            system.close()


class Setting:
    """One machine for all: a PostgreSQL server, the console on it, a database for peers, and vectors for everybody."""

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
        self.is_working = False

    def begin_work(self) -> None:
        """The worker starts when there is something to do, and knows how much."""
        analyze()
        if not self.is_working:
            start_worker()
        self.is_working = True

    def directory(self, name: str) -> Path:
        made = self.work / name
        made.mkdir()
        return made

    def race(self, names: Sequence[str], material: Path, *, ours: bool = True) -> Comparison:
        race, database = Comparison(), self._database(material.name)
        known = json.loads((material / "material.json").read_text())
        self.embeddings.load(known["texts"], material / "vectors.f32")
        self.embeddings.load(known["questions"], material / "questions.f32")
        if ours:
            race.enter(OURS, lambda: Ours(self.console, self.server, material, _version(), self.begin_work))
        for name in names:
            work = self.work / f"{material.name}-{name.replace(' ', '-')}"
            race.enter(name, partial(Peer, name, self.python, material, work, database, self.patience))
        return race

    def end(self, race: Comparison) -> None:
        race.close()
        self.failures |= race.failures
        for system in race.systems:
            self.versions |= system.versions

    def write(self, name: str, rows: Sequence[dict[str, Any]], began: tuple[float, ...], **more: Any) -> None:
        for system, why in self.failures.items():
            print(f"{system} was not measured: {why}")
        load_average = [[round(figure, 1) for figure in moment] for moment in (began, os.getloadavg())]
        about = {"versions": self.versions, "not_measured": self.failures, "load_average": load_average}
        write_result(name, rows, **about, **more)

    def _database(self, name: str) -> str:
        """With room for building indexes, and otherwise as the console's."""
        from django.db import connection

        name = f"peers_{name.replace('-', '_')}"
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
            cursor.execute(f"ALTER DATABASE {name} SET maintenance_work_mem = '1GB'")
        at = connection.get_connection_params()
        return f"postgresql://{at['user']}@/{name}?host={at['host']}&port={at['port']}"


def postmaster() -> int:
    """Its first line says who it is."""
    from django.conf import settings

    return int((settings.DATA_DIR / "postgres" / "data" / "postmaster.pid").read_text().splitlines()[0])


def _version() -> str:
    import tomllib

    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
