"""The benchmarks share parts with each other: a part that is renamed in one must not break another until it is run."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_a_benchmark_finds_its_parts(name: str) -> None:
    command = [sys.executable, "-c", f"import {name}"]
    done = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
