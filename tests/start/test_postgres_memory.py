"""PostgreSQL takes a share of the memory there is, which in a container is less than the machine has."""

from pathlib import Path

import pytest

from memoryconsole.embedded.memory import settings


@pytest.mark.parametrize(
    ("limit", "buffers"),
    [(str(1024 * 2**20), "256MB"), (str(100 * 2**20), "128MB")],
)
def test_a_container_s_limit_counts(tmp_path: Path, limit: str, buffers: str) -> None:
    file = tmp_path / "memory.max"
    file.write_text(limit + "\n")
    assert settings([file])["shared_buffers"] == buffers


def test_no_limit_is_the_machine_s(tmp_path: Path) -> None:
    file = tmp_path / "memory.max"
    file.write_text("max\n")
    assert settings([file, tmp_path / "absent"]) == settings([])


def test_it_never_takes_more_than_eight_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 256 * 2**30 // 4096}
    monkeypatch.setattr("os.sysconf", pages.__getitem__)
    assert settings([])["shared_buffers"] == "8192MB"
