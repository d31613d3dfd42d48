"""`.ci/install` says what is missing instead of failing halfway."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.environment import ROOT

TOOLS = ["sh", "dirname", "cksum", "cat", "mkdir", "rm", "mv", "sleep"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "install", tmp_path / ".ci")
    (tmp_path / "requirements.txt").write_text("")
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or "")
    return tmp_path


def install(project: Path) -> subprocess.CompletedProcess[str]:
    command = [str(project / ".ci" / "install"), "requirements.txt"]
    path = {"PATH": str(project / "bin")}
    return subprocess.run(command, cwd="/", env=path, capture_output=True, text=True, timeout=30, check=False)


def fake_python(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "python").write_text("#!/bin/sh\nexit 0\n")
    (directory / "python").chmod(0o755)


def test_a_missing_python_is_explained(project):
    answer = install(project)
    assert answer.returncode == 1
    assert "needs Python 3.11 or newer" in answer.stderr


def test_an_old_python_counts_as_missing(project):
    (project / "bin" / "python3").write_text("#!/bin/sh\nexit 1\n")
    (project / "bin" / "python3").chmod(0o755)
    assert "needs Python 3.11 or newer" in install(project).stderr


def test_nothing_is_done_twice(project):
    fake_python(project / ".venv" / "bin")
    assert "Installing" in install(project).stderr
    second = install(project)
    assert (second.returncode, second.stderr) == (0, "")
    (project / "requirements.txt").write_text("changed\n")
    assert "Installing" in install(project).stderr


def test_an_interrupted_installation_is_started_over(project):
    fake_python(project / ".venv" / "bin")
    fake_python(project / "bin")
    (project / ".venv" / ".installing").write_text("999999999\n")
    (project / ".venv" / "half").write_text("")
    answer = install(project)
    assert "interrupted" in answer.stderr
    assert not (project / ".venv" / "half").exists()
