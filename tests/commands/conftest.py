"""A shell for tests: the words of a command line in; exit code, stdout and stderr out."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.management import get_commands, load_command_class
from django.db import connections

from instances.models import Instance
from tests.factories import make_instance


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Shell = Callable[..., Ran]


@pytest.fixture
def shell(db: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    # A command closes its connections when it ends; the test's transaction lives in one of them.
    monkeypatch.setattr(connections, "close_all", lambda: None)

    def run(name: str, *words: str, stdin: bytes | None = b"", person: bool = False, terminal: bool = False) -> Ran:
        """`person` sits at the keyboard, `terminal` is what stdout goes to."""
        keyboard = None if stdin is None else io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
        if keyboard is not None:
            monkeypatch.setattr(keyboard, "isatty", lambda: person)
        monkeypatch.setattr(sys, "stdin", keyboard)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
        capsys.readouterr()
        code = 0
        try:
            load_command_class(get_commands()[name], name).run_from_argv(["manage.py", name, *words])
        except SystemExit as end:
            code = int(end.code or 0)
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def support_bot(db: None) -> Instance:
    return make_instance("support-bot")


@pytest.fixture
def sales_bot(db: None) -> Instance:
    return make_instance("sales-bot")
