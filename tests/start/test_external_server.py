"""The same migrations and commands on a PostgreSQL the console did not start."""

import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from memoryconsole.embedded import binaries
from memoryconsole.embedded.account import unprivileged
from memoryconsole.embedded.home import SHARED
from tests.start.console import Console, manage, unused_port, wait_until
from tests.start.test_pg import documented


@dataclass
class Outside:
    """A server that somebody else starts and stops."""

    url: str
    run: Callable[..., None]
    cluster: str
    options: str

    def start(self) -> None:
        self.run("pg_ctl", "start", "-s", "-w", "-D", self.cluster, "-o", self.options)

    def stop(self) -> None:
        self.run("pg_ctl", "stop", "-s", "-w", "-m", "immediate", "-D", self.cluster)


@pytest.fixture
def outside(reachable_dir: Path, free_port: int) -> Iterator[Outside]:
    account, bin_dir = unprivileged(), binaries.find("", SHARED)
    place = reachable_dir / "outside"
    place.mkdir(mode=0o700)
    password = place / "password"
    password.write_text("open:sesame@1\n")
    for path in (place, password):
        account.own(path)
    cluster = str(place / "data")

    def run(program: str, *arguments: str) -> None:
        done = account.run([str(bin_dir / program), *arguments], stdout=subprocess.DEVNULL)
        assert done.returncode == 0

    run("initdb", "-D", cluster, "-U", "ada", "--auth=scram-sha-256", f"--pwfile={password}", "--no-sync", "-E", "UTF8")
    address = f"postgres://ada:open%3Asesame%401@127.0.0.1:{free_port}"
    url = f"{address}/the%20console?application_name=elsewhere&connect_timeout=4"
    server = Outside(url, run, cluster, f"-p {free_port} -h 127.0.0.1 -k '' -c fsync=off")
    server.start()
    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute('CREATE DATABASE "the console"')
    yield server
    server.stop()


@pytest.fixture
def database_url(outside: Outside) -> str:
    return outside.url


@pytest.fixture
def console(outside: Outside, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    monkeypatch.setenv("DATABASE_URL", outside.url)
    console = Console(data_dir, unused_port()).wait_until_ready()
    yield console
    console.signal(signal.SIGTERM)


def test_migrate_and_doctor_on_a_server_of_ones_own(database_url, data_dir):
    migrated = manage("migrate", data_dir=data_dir, DATABASE_URL=database_url)
    assert migrated.returncode == 0, migrated.stderr
    examined = manage("doctor", "--json", data_dir=data_dir, DATABASE_URL=database_url)
    findings = {finding["check"]: finding for finding in json.loads(examined.stdout)["findings"]}
    assert examined.returncode == 0
    assert findings["migrations"]["level"] == "ok"
    assert "DATABASE_URL" in findings["database"]["message"]
    assert not (data_dir / "postgres").exists()


def test_consoles_that_start_together_migrate_one_after_the_other(database_url, data_dir):
    def migrate() -> str:
        return manage("migrate", "--verbosity", "0", data_dir=data_dir, DATABASE_URL=database_url).stderr

    with ThreadPoolExecutor(3) as consoles:
        answers = [consoles.submit(migrate) for _ in range(3)]
    assert [answer.result() for answer in answers] == ["", "", ""]


def test_an_outage_keeps_nobody_waiting_and_is_over_when_the_server_is_back(outside, console, data_dir):
    key = manage("createapikey", "--all-instances", data_dir=data_dir, DATABASE_URL=outside.url).stdout.strip()

    def status() -> int:
        return console.get("/api/v1/instances", key)[0]

    assert status() == 200
    outside.stop()
    began = time.monotonic()
    try:
        wait_until(lambda: status() == 503)
        with ThreadPoolExecutor(24) as callers:
            answers = [callers.submit(status) for _ in range(24)]
            time.sleep(0.2)
            asked = time.monotonic()
            assert console.get("/healthz")[0] == 200
            assert time.monotonic() - asked < 5
            assert {answer.result() for answer in answers} == {503}
        time.sleep(max(0.0, began + 17 - time.monotonic()))
    finally:
        outside.start()
    wait_until(lambda: status() == 200, seconds=6)


def database_of_grace(outside: Outside) -> str:
    """The address of a database `hers`, whose owner is no superuser."""
    address = outside.url.partition("/the%20console")[0]
    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute("CREATE ROLE grace LOGIN PASSWORD 'hopper'")
        connection.execute("CREATE DATABASE hers OWNER grace")
    return f"{address.replace('ada:open%3Asesame%401', 'grace:hopper')}/hers"


def let_vectors_in(outside: Outside, database: str) -> None:
    address = outside.url.partition("/the%20console")[0]
    with psycopg.connect(f"{address}/{database}", autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")


def test_a_user_who_may_not_create_extensions_is_told_and_works_once_they_are_there(outside, data_dir):
    hers = database_of_grace(outside)
    refused = manage("up", "--port", str(unused_port()), data_dir=data_dir, DATABASE_URL=hers)
    assert refused.returncode == 1
    assert 'cannot be applied: permission denied to create extension "vector". docs/running.md' in refused.stderr
    assert "Traceback" not in refused.stderr

    let_vectors_in(outside, "hers")
    migrated = manage("migrate", data_dir=data_dir, DATABASE_URL=hers)
    assert migrated.returncode == 0, migrated.stderr


def test_a_backup_is_restored_into_a_database_of_a_user_who_may_not_create_extensions(outside, data_dir):
    def run(url: str, *arguments: str) -> str:
        done = manage(*arguments, data_dir=data_dir, DATABASE_URL=url, PATH=f"{programs}:{os.environ['PATH']}")
        assert done.returncode == 0, done.stderr
        return done.stdout

    programs, dump = binaries.find("", SHARED), str(data_dir / "console.dump")
    (backup,), (_, restore) = documented("pg_dump"), documented("pg_restore")
    run(outside.url, "migrate", "-v", "0")
    run(outside.url, "createinstance", "support-bot")
    run(outside.url, *backup[:-1], dump)
    hers = database_of_grace(outside)
    let_vectors_in(outside, "hers")
    run(hers, *restore[:-2], "hers", dump)
    assert run(hers, "pg", "psql", "-qAtc", "SELECT slug FROM instances_instance") == "support-bot\n"


def database_made_with(outside: Outside, options: str) -> str:
    address = outside.url.partition("/the%20console")[0]
    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE other TEMPLATE template0 LOCALE 'C' {options}")
    return f"{address}/other"


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_store_every_text_is_refused_before_anything_is_put_there(outside, data_dir, encoding):
    url = database_made_with(outside, f"ENCODING '{encoding}'")
    refused = manage("up", "--port", str(unused_port()), data_dir=data_dir, DATABASE_URL=url)
    assert refused.returncode == 1
    assert f"The database stores text as {encoding}, not as UTF8. Make another one with" in refused.stderr
    assert "Traceback" not in refused.stderr
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)
    assert (
        f"✗ text: The database stores text as {encoding}"
        in manage("doctor", data_dir=data_dir, DATABASE_URL=url).stdout
    )


def test_doctor_says_that_a_locale_without_capitals_finds_less(outside, data_dir):
    url = database_made_with(outside, "ENCODING 'UTF8'")
    assert (
        "! text: The database's locale knows no capitals"
        in manage("doctor", data_dir=data_dir, DATABASE_URL=url).stdout
    )


BUILD = """
from memories.embedding.backfill import embed_pending
from memories.search.vector_index import build_index
from tests.factories import make_instance, make_memory, scope_of

scope = scope_of(make_instance("tea-bot", embedder="offline"))
for n in range(8):
    make_memory(scope.instance, f"Tea number {n}")
embed_pending(scope)
scope.instance.refresh_from_db()
build_index(scope)
"""


def test_where_processes_can_share_little_memory_a_vector_index_is_built_by_one_of_them(outside, data_dir):
    migrated = manage("migrate", data_dir=data_dir, DATABASE_URL=outside.url)
    assert migrated.returncode == 0, migrated.stderr
    # What they share is a file, and none may be as large as the server's `maintenance_work_mem`.
    outside.stop()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (32 * 2**20, before[1]))
    outside.start()
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with psycopg.connect(outside.url, autocommit=True) as connection:
        connection.execute("ALTER TABLE memories_embedding SET (parallel_workers = 2)")
        built = manage("shell", "-c", BUILD, data_dir=data_dir, DATABASE_URL=outside.url)
        assert built.returncode == 0, built.stderr
        states = "SELECT indisvalid FROM pg_index WHERE starts_with(indexrelid::regclass::text, 'vectors_of_')"
        assert connection.execute(states).fetchall() == [(True,)]
