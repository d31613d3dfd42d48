"""What commands print arrives, whatever the locale, and whoever stops reading."""

import os
import subprocess
import sys

import pytest

from tests.conftest import discard
from tests.environment import ROOT
from tests.start.console import manage, unused_port

NO_UNICODE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_a_locale_without_our_signs_stops_nothing(data_dir):
    """As on a machine set to ISO 8859-1: the first line of `up` has an ellipsis."""
    examined = manage("doctor", data_dir=data_dir, **NO_UNICODE)
    assert "✓ python" in examined.stdout
    assert "Traceback" not in examined.stderr


def test_a_data_directory_the_locale_cannot_spell_is_used_like_any_other(data_dir):
    """Made where it can be spelt, then looked at by cron, which knows no locale."""
    place = data_dir / "größe"
    assert manage("pg", "psql", "-c", "SELECT 1", data_dir=place).returncode == 0
    try:
        examined = manage("doctor", data_dir=place, **NO_UNICODE)
        assert "✓ database: PostgreSQL" in examined.stdout
        assert "Traceback" not in examined.stderr
    finally:
        discard(place)


def test_why_postgresql_does_not_start_is_said_in_its_own_words(data_dir):
    assert manage("pg", "psql", "-c", "SELECT 1", data_dir=data_dir).returncode == 0
    (data_dir / "postgres" / "data" / "postgresql.conf").write_text("no_such_setting = 1\n")
    started = manage("up", "--port", str(unused_port()), data_dir=data_dir)
    assert started.returncode == 1
    assert 'unrecognized configuration parameter "no_such_setting"' in started.stderr
    examined = manage("doctor", data_dir=data_dir)
    assert "✗ database: The database cannot be reached.\n    PostgreSQL did not start; " in examined.stdout
    assert 'unrecognized configuration parameter "no_such_setting"' in examined.stdout


def test_doctor_may_be_cut_short(data_dir):
    command = f"{sys.executable} {ROOT / 'manage.py'} doctor | head -1"
    environment = {**os.environ, "DATA_DIR": str(data_dir)}
    done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("✓ python")
    assert done.stderr == ""


@pytest.mark.parametrize("arguments", ["doctor", "doctor --json"])
def test_a_full_disk_is_said_in_one_line(data_dir, arguments):
    command = f"{sys.executable} {ROOT / 'manage.py'} {arguments} > /dev/full"
    # Buffered, as it is for most people.
    environment = {**os.environ, "DATA_DIR": str(data_dir), "PYTHONUNBUFFERED": ""}
    done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "Not all of it could be written: No space left on device.\n")


def test_ctrl_c_ends_any_command_without_a_traceback(data_dir):
    interrupted = manage("shell", "-c", "import signal; signal.raise_signal(signal.SIGINT)", data_dir=data_dir)
    assert (interrupted.returncode, interrupted.stderr) == (130, "")
