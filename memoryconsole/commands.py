"""What our management commands share: an error is a line per reason on stderr and an exit code, not a traceback."""

import errno
import os
import re
import sys
from argparse import ArgumentParser
from typing import IO, Any, NoReturn

from django.core.management.base import BaseCommand
from django.db import OperationalError, ProgrammingError

from accounts.access import SHELL, Scope, open_instance
from memoryconsole.errors import Invalid, NotFound, Problem
from memoryconsole.terminal import json_text, printable

FAILED = 1
INTERRUPTED = 130
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
EXIT_CODES = {400: 2, 404: 3, 409: 4}


class ConsoleCommand(BaseCommand):
    # System checks load every page and endpoint, which takes seconds; `manage.py check` runs them.
    requires_system_checks = []
    # What fields are called on the command line, if that is not an option of the same name.
    written_as: dict[str, str] = {}

    def run_from_argv(self, argv: list[str]) -> None:
        try:
            _require_unicode(argv)
            try:
                super().run_from_argv(argv)
            finally:
                # Also if the command has ended itself: Python would say in its own words that flushing fails at exit.
                sys.stdout.flush()
        except Problem as problem:
            self.complain(*reasons(problem, self.written_as))
            sys.exit(EXIT_CODES.get(problem.status, FAILED))
        except (OperationalError, ProgrammingError) as error:
            self.fail(database_trouble(error))
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            # The reader of our output, such as `head`, has closed it. Python would fail to flush it at exit.
            _discard_output()
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            _discard_output()
            self.fail(f"Not all of it could be written: {error.strerror}.")

    def complain(self, *lines: str) -> None:
        """Write to stderr without Django's red: it ignores NO_COLOR, and not every line is an error."""
        for line in lines:
            self.stderr.write(printable(line), style_func=str)

    def fail(self, line: str) -> NoReturn:
        """Say why nothing was done, and stop."""
        self.complain(line)
        sys.exit(FAILED)

    def print_json(self, answer: Any) -> None:
        self.stdout.write(json_text(answer))


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def is_interactive() -> bool:
    """Whether a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def standard_input() -> IO[bytes]:
    """A program can be started without one."""
    if sys.stdin is None:
        raise Problem("There is no standard input to read.")
    return sys.stdin.buffer


def _require_unicode(argv: list[str]) -> None:
    """Python makes lone surrogates of bytes that are not UTF-8, and PostgreSQL refuses those."""
    try:
        "".join(argv).encode()
    except UnicodeEncodeError:
        raise Problem("The arguments are not valid UTF-8.") from None


def add_json_option(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, with the names the API uses")


def open_from_shell(slug: str) -> Scope:
    """An instance opened by whoever has a shell on the server."""
    try:
        return open_instance(SHELL, slug)
    except NotFound:
        raise NotFound(f"There is no instance “{slug}”.") from None


def reasons(problem: Problem, written_as: dict[str, str]) -> list[str]:
    if not isinstance(problem, Invalid):
        return [problem.detail]
    return [
        reason if field == "body" else f"{_written(field, written_as)}: {reason}"
        for field, found in problem.errors.items()
        for reason in found
    ]


def option_name(field: str) -> str:
    """`minImportance` and `min_importance` are both written `--min-importance`."""
    return "--" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", field).replace("_", "-").lower()


def _written(field: str, written_as: dict[str, str]) -> str:
    name = field.partition(".")[0]
    return written_as.get(name) or option_name(name)


def database_trouble(error: Exception) -> str:
    if isinstance(error, ProgrammingError):
        if getattr(error.__cause__, "sqlstate", "") not in {"42P01", "42703"}:
            raise error
        return "The database is not set up for this version. Run: manage.py doctor"
    first_line = str(error).strip().partition("\n")[0]
    return f"The database does not answer ({first_line}). Run: manage.py doctor"
