"""The embedded server starts once, stops with its last user, and survives what can happen to a process."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import psycopg
import pytest

from memoryconsole.embedded import DATABASE, EmbeddedPostgresError, Server
from memoryconsole.embedded import home as homes
from memoryconsole.embedded.account import Account, owner_of, unprivileged
from tests.environment import ROOT


@pytest.fixture(scope="module")
def server(shared_data_dir: Path) -> Server:
    server = Server(shared_data_dir, durable=False)
    server.ensure_running()
    return server


def connect(server: Server) -> psycopg.Connection:
    address = server.ensure_running()
    return psycopg.connect(**address.parameters(DATABASE), autocommit=True)


def ask(server: Server, query: str) -> object:
    with connect(server) as connection:
        row = connection.execute(query).fetchone()
    return row and row[0]


def pid_of(server: Server) -> int:
    return int((server.data_dir / "postgres" / "data" / "postmaster.pid").read_text().split("\n")[0])


def test_it_listens_on_a_private_socket_only(server):
    assert ask(server, "SHOW listen_addresses") == ""
    directory = Path(server.ensure_running().host)
    assert directory.stat().st_mode & 0o077 == 0
    assert len(str(directory)) < 100


def test_it_checks_its_pages_and_speaks_utc_and_utf8(server):
    assert ask(server, "SHOW data_checksums") == "on"
    assert ask(server, "SHOW timezone") == "UTC"
    assert ask(server, "SHOW server_encoding") == "UTF8"


@pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="only /proc shows what environment another process was given"
)
def test_the_server_never_sees_our_environment(data_dir, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-only-for-us")
    server = Server(data_dir, durable=False)
    server.ensure_running()
    assert b"sk-only-for-us" not in Path(f"/proc/{pid_of(server)}/environ").read_bytes()


def test_a_second_user_finds_the_same_server(server):
    before = pid_of(server)
    other = Server(server.data_dir, durable=False)
    assert other.ensure_running() == server.ensure_running()
    assert pid_of(server) == before
    other.leave()
    assert server.is_running()


def test_the_last_one_out_stops_it(data_dir):
    first, second = Server(data_dir, durable=False), Server(data_dir, durable=False)
    first.ensure_running()
    second.ensure_running()
    first.leave()
    assert second.is_running()
    second.leave()
    assert not second.is_running()
    assert not (data_dir / "postgres" / "data" / "postmaster.pid").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root keeps the cluster outside of the data directory")
def test_it_is_stopped_even_when_the_data_directory_is_gone(data_dir):
    server = Server(data_dir, durable=False)
    host = server.ensure_running().host
    home = (data_dir / "postgres").resolve()
    assert home.parent != data_dir
    shutil.rmtree(data_dir)
    server.leave()
    assert not Path(host, ".s.PGSQL.5432").exists()
    assert not data_dir.exists()
    shutil.rmtree(home)


def test_a_server_that_is_killed_while_it_stops_has_stopped(data_dir):
    server = Server(data_dir, durable=False)
    server.ensure_running()
    os.kill(pid_of(server), signal.SIGSTOP)  # so that it does not stop by itself
    Timer(0.5, os.kill, (pid_of(server), signal.SIGKILL)).start()
    server.stop()
    assert not server.is_running()


def test_a_killed_server_comes_back_with_its_data(data_dir):
    server = Server(data_dir)
    with connect(server) as connection:
        connection.execute("CREATE TABLE kept (word text)")
        connection.execute("INSERT INTO kept VALUES ('committed')")
        os.kill(pid_of(server), signal.SIGKILL)
    assert server.revive() is True
    assert ask(server, "SELECT word FROM kept") == "committed"
    assert server.revive() is False


def test_a_pid_that_went_to_another_program_is_not_believed(server):
    account = owner_of(server.data_dir / "postgres" / "data")
    become = {"user": account.uid, "group": account.gid} if os.geteuid() == 0 else {}
    with subprocess.Popen(["sleep", "60"], **become) as stranger:
        try:
            os.kill(pid_of(server), signal.SIGKILL)
            file = server.data_dir / "postgres" / "data" / "postmaster.pid"
            lines = file.read_text().split("\n")
            file.write_text("\n".join([str(stranger.pid), *lines[1:]]))
            assert server.revive() is True
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_a_removed_socket_is_made_again(server):
    (Path(server.ensure_running().host) / ".s.PGSQL.5432").unlink()
    assert server.revive() is True
    assert ask(server, "SELECT 1") == 1


def test_two_processes_racing_on_an_empty_directory_share_one_server(data_dir):
    script = (
        "import sys; from pathlib import Path; from memoryconsole.embedded import Server\n"
        "server = Server(Path(sys.argv[1]), durable=False); server.ensure_running()\n"
        "print(Path(sys.argv[1], 'postgres/data/postmaster.pid').read_text().split()[0], flush=True)\n"
        "sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(data_dir)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    with subprocess.Popen(command, **pipes) as one, subprocess.Popen(command, **pipes) as two:
        pids = {one.stdout.readline(), two.stdout.readline()}
        one.communicate(timeout=30)
        assert Server(data_dir, durable=False).is_running()
        two.communicate(timeout=30)
    assert len(pids) == 1
    assert not Server(data_dir, durable=False).is_running()
    assert (one.returncode, two.returncode) == (0, 0)


def test_an_interrupted_initdb_is_started_over(data_dir):
    home = homes.open_home(data_dir)
    half = home.path / "data.new-half"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    server = Server(data_dir, durable=False)
    assert ask(server, "SELECT 1") == 1
    assert not half.exists()


def test_data_of_another_version_is_explained(data_dir):
    server = Server(data_dir, durable=False)
    server.ensure_running()
    server.leave()
    (data_dir / "postgres" / "data" / "PG_VERSION").write_text("9\n")
    with pytest.raises(EmbeddedPostgresError, match=r"made by PostgreSQL 9.*PG_BIN_DIR"):
        server.ensure_running()


def test_a_path_too_long_for_a_socket_still_works(reachable_dir, monkeypatch):
    monkeypatch.setattr(homes, "SHARED", reachable_dir / ("long" * 25))
    server = Server(reachable_dir / ("deep" * 25), durable=False)
    assert ask(server, "SELECT 1") == 1
    directory = Path(server.ensure_running().host)
    assert directory.name.startswith("memory-console-")
    server.leave()
    directory.rmdir()


@pytest.fixture
def far_away(reachable_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Its path is too long for a socket."""
    monkeypatch.setattr(homes, "SHARED", reachable_dir / ("long" * 25))
    server = Server(reachable_dir / ("deep" * 25), durable=False)
    directory = Path(server.ensure_running().host)
    yield server
    server.stop("immediate")
    shutil.rmtree(directory)


def test_another_temporary_directory_does_not_hide_the_server(far_away, tmp_path, monkeypatch):
    running = pid_of(far_away)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    visitor = Server(far_away.data_dir, durable=False)
    assert visitor.ensure_running() == far_away.ensure_running()
    visitor.leave()
    assert pid_of(far_away) == running


VISIT = """
import sys
from pathlib import Path
from memoryconsole.embedded import Server
from memoryconsole.embedded import home
home.SHARED = Path(sys.argv[2])
Server(Path(sys.argv[1]), durable=False).ensure_running()
"""


def may_mount() -> bool:
    """Root of many containers may not, and has the command all the same."""
    alone = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/tmp"]
    return (
        shutil.which("unshare") is not None and subprocess.run(alone, capture_output=True, check=False).returncode == 0
    )


@pytest.mark.skipif(not may_mount(), reason="only who may mount can have a /tmp of their own, as a service has")
def test_a_server_with_a_tmp_of_its_own_is_not_stopped_by_who_cannot_see_it(far_away, tmp_path):
    running = pid_of(far_away)
    directory = far_away.ensure_running().host
    visit = shlex.join([sys.executable, "-c", VISIT, str(far_away.data_dir), str(homes.SHARED)])
    elsewhere = f"mount -t tmpfs none {shlex.quote(directory)} && {visit}"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", elsewhere], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "cannot be seen from here" in done.stderr
    assert pid_of(far_away) == running
    assert ask(far_away, "SELECT 1") == 1


def test_a_socket_directory_of_someone_else_is_refused(reachable_dir):
    home = homes.Home(reachable_dir, Account(12345, 12345))
    (reachable_dir / "run").mkdir(mode=0o700)
    with pytest.raises(EmbeddedPostgresError, match="private"):
        homes.make_socket_directory(home)


def test_an_unusable_data_directory_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedPostgresError, match=r"cannot be kept in .*file/data.*DATA_DIR"):
        Server(tmp_path / "file" / "data").ensure_running()


@pytest.mark.parametrize(("name", "use"), [("users", Server.ensure_running), ("lock", Server.revive)])
def test_a_data_directory_that_became_unusable_is_named_too(data_dir, name, use):
    """As on a disk that was mounted again for reading only. A directory in the place of a file stops root as well."""
    server = Server(data_dir, durable=False)
    server.ensure_running()
    server.leave()
    file = data_dir / "postgres" / name
    file.unlink()
    file.mkdir()
    with pytest.raises(EmbeddedPostgresError, match=r"cannot be kept in .*DATA_DIR"):
        use(server)
    file.rmdir()


def test_a_link_to_a_missing_cluster_is_not_an_invitation_to_start_empty(tmp_path):
    (tmp_path / "postgres").symlink_to(tmp_path / "gone")
    with pytest.raises(EmbeddedPostgresError, match="missing"):
        Server(tmp_path).ensure_running()


def test_a_wrong_bin_directory_is_named(data_dir):
    with pytest.raises(EmbeddedPostgresError, match="PG_BIN_DIR"):
        Server(data_dir, bin_dir=str(data_dir / "nothing")).ensure_running()


def test_root_hands_it_to_an_account_that_exists():
    assert unprivileged().uid != 0
