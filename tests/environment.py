"""Sets the environment of the tests, without the developer's own settings. To be imported before Django's settings."""

import os
import re
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = {"PG_BIN_DIR"}
IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ


def documented_variables() -> set[str]:
    return set(re.findall(r"^# ([A-Z_]+)=", (ROOT / ".env.example").read_text(), flags=re.MULTILINE))


# Workers of pytest-xdist inherit what the first process has set.
if not IS_WORKER:
    for name in documented_variables() - KEPT:
        os.environ.pop(name, None)
    os.environ |= {
        "IGNORE_DOTENV": "yes",
        "DATA_DIR": tempfile.mkdtemp(prefix="memory-console-tests-"),
        "PG_FSYNC": "no",
        "LOG_LEVEL": "WARNING",
        "DJANGO_SETTINGS_MODULE": "memoryconsole.settings",
    }
DATA_DIR = Path(os.environ["DATA_DIR"])
