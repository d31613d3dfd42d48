"""The same migrations and commands on a PostgreSQL the console did not start."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from memoryconsole.embedded import binaries
from memoryconsole.embedded.account import unprivileged
from memoryconsole.embedded.home import SHARED
from tests.start.console import manage


@pytest.fixture
def database_url(reachable_dir: Path, free_port: int) -> Iterator[str]:
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
    options = f"-p {free_port} -h 127.0.0.1 -k '' -c fsync=off"
    run("pg_ctl", "start", "-s", "-w", "-D", cluster, "-o", options)
    url = f"postgres://ada:open%3Asesame%401@127.0.0.1:{free_port}"
    with psycopg.connect(f"{url}/postgres", autocommit=True) as connection:
        connection.execute('CREATE DATABASE "the console"')
    yield f"{url}/the%20console?application_name=elsewhere"
    run("pg_ctl", "stop", "-s", "-w", "-m", "immediate", "-D", cluster)


def test_migrate_and_doctor_on_a_server_of_ones_own(database_url, data_dir):
    migrated = manage("migrate", data_dir=data_dir, DATABASE_URL=database_url)
    assert migrated.returncode == 0, migrated.stderr
    examined = manage("doctor", "--json", data_dir=data_dir, DATABASE_URL=database_url)
    findings = {finding["check"]: finding for finding in json.loads(examined.stdout)["findings"]}
    assert examined.returncode == 0
    assert findings["migrations"]["level"] == "ok"
    assert "DATABASE_URL" in findings["database"]["message"]
    assert not (data_dir / "postgres").exists()
