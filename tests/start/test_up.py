"""`manage.py up` brings everything up, keeps it up, and takes everything down. In order: one console for all."""

import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from django.core.management import CommandError, call_command

from tests.start.console import Console, manage, processes, unused_port, wait_until


@pytest.fixture(scope="module")
def console(shared_data_dir: Path, free_port: int) -> Iterator[Console]:
    console = Console(shared_data_dir, free_port)
    try:
        yield console.wait_until_ready()
    finally:
        end(console)


@pytest.fixture(scope="module")
def key(console: Console) -> str:
    made = manage("createapikey", "--instance", "support-bot", data_dir=console.data_dir)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def end(console: Console) -> None:
    for pid in console.family():
        if pid in processes():
            os.kill(pid, signal.SIGKILL)
    console.process.wait()


def test_it_starts_from_nothing_and_says_where(console):
    assert console.get("/healthz") == (200, {"status": "ok"})
    assert f"http://127.0.0.1:{console.port}" in console.output
    assert re.search(r"Sign in as admin with the password \S{10,}", console.output)


def test_nothing_but_the_server_can_read_the_cluster(console):
    assert (console.data_dir / "postgres" / "data").stat().st_mode & 0o077 == 0


def test_a_second_one_on_the_same_port_is_refused(console):
    second = manage("up", data_dir=console.data_dir, PORT=str(console.port))
    assert second.returncode == 1
    assert f"port {console.port}" in second.stderr
    assert "Traceback" not in second.stderr


def test_how_long_a_search_may_be(console, key):
    """A character of three bytes takes nine in a URL, which may have 65,534."""
    url = "/api/v1/memories?instanceId=support-bot&search="
    assert console.get(url + quote("雪" * 7_000), key)[0] == 200
    assert console.get(url + "a" * 10_000, key)[0] == 200
    assert console.get(url + quote("雪" * 10_000), key)[0] == 414
    asked = {"instanceId": "support-bot", "query": "雪" * 10_000}
    assert console.get("/api/v1/recall", key, asked)[0] == 200


def test_it_may_be_told_a_name_to_listen_on(shared_data_dir, console):
    named = Console(shared_data_dir, unused_port(), HOST="localhost")
    try:
        named.wait_until_ready()
        assert f"http://localhost:{named.port}" in named.output
    finally:
        named.signal(signal.SIGTERM)


def test_an_impossible_port_is_refused(capsys):
    with pytest.raises(CommandError, match="ports go from 1 to 65535"):
        call_command("up", "--port", "99999")


def test_a_killed_web_server_loses_nothing_it_had_promised(console, key):
    promised: list[str] = []
    killed = threading.Event()

    def write() -> None:
        for number in range(1000):
            body = {"instanceId": "support-bot", "content": f"Ada ordered part {number}.", "dedupe": "create"}
            status, answer = console.get("/api/v1/memories", key, body)
            if status == 201:
                promised.append(answer["memory"]["id"])
            elif killed.is_set():
                return

    writer = threading.Thread(target=write)
    writer.start()
    wait_until(lambda: len(promised) >= 5)
    server, *_ = [pid for pid in console.children("web") if processes()[pid][0] != console.process.pid]
    killed.set()
    os.kill(server, signal.SIGKILL)
    writer.join()
    wait_until(lambda: console.get("/healthz")[0] == 200)
    for memory in promised:
        assert console.get(f"/api/v1/memories/{memory}?instanceId=support-bot", key)[0] == 200
    assert server not in console.family()


def test_a_killed_database_is_back_without_a_restart(console, key):
    before = console.postgres()
    os.kill(before[0], signal.SIGKILL)
    # A request on its way in that very moment may get a 503; the next ones must not.
    wait_until(lambda: console.get("/api/v1/memories?instanceId=support-bot", key)[0] == 200)
    assert console.postgres() != before
    wait_until(lambda: console.get("/readyz")[0] == 200)


def test_a_killed_worker_is_replaced(console):
    before = console.children("worker")
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: console.children("worker") not in ([], before))


def test_sigterm_leaves_nothing_behind(console):
    family = console.family()
    assert {"up", "postgres"} < set(family.values())
    assert console.signal(signal.SIGTERM) == 0
    assert not family.keys() & processes().keys()
    assert console.output.rstrip().endswith("Stopped.")


def test_ctrl_c_is_answered_calmly_and_the_password_is_not_shown_again(console):
    again = Console(console.data_dir, console.port).wait_until_ready()
    family = again.family()
    assert again.signal(signal.SIGINT) == 0
    assert "Traceback" not in again.output
    assert "password" not in again.output
    assert not family.keys() & processes().keys()


def test_a_signal_while_the_supervisor_takes_over_is_not_lost(console):
    again = Console(console.data_dir, console.port)
    wait_until(lambda: "memoryconsole.supervisor" in processes()[again.process.pid][1])
    assert again.signal(signal.SIGTERM) == 0
    assert again.output.rstrip().endswith("Stopped.")
    assert console.postgres() == []


def test_kill_9_takes_the_children_along(console):
    again = Console(console.data_dir, console.port).wait_until_ready()
    family = again.family()
    again.signal(signal.SIGKILL)
    wait_until(lambda: not family.keys() & processes().keys())
