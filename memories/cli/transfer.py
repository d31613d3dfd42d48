"""`memory export` and `memory import`: files and pipes, with a progress bar."""

import shutil
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from accounts.access import Scope
from memories.cli.options import add_options, read_options
from memories.cli.printing import progress_bar
from memories.filters import Filters
from memories.listing import count
from memories.transfer.exporting import export
from memories.transfer.formats.detecting import FORMATS
from memories.transfer.importing import import_file
from memories.transfer.report import Report, report_json
from memories.transfer.uploads import format_named
from memoryconsole.commands import FAILED, ConsoleCommand, standard_input
from memoryconsole.counting import counted
from memoryconsole.errors import Problem

PART = 1024 * 1024


def add_export_options(parser: ArgumentParser) -> None:
    parser.add_argument("--format", metavar="WORD", choices=("jsonl", "csv"), default="jsonl", help="jsonl or csv")
    parser.add_argument("--output", metavar="FILE", default="-", help="where to; standard output unless given")
    parser.add_argument("--vectors", action="store_true", help="also the vectors, with jsonl")
    add_options(parser, Filters)


def add_import_options(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="what to import; - reads standard input")
    help = f"{', '.join(FORMATS)}; found out unless given"
    parser.add_argument("--format", metavar="WORD", default="", help=help)
    parser.add_argument("--dry-run", action="store_true", help="say what would happen, and store nothing")


def export_to_file(command: ConsoleCommand, scope: Scope, options: dict[str, Any]) -> None:
    filters = read_options(Filters, options)
    done = 0

    def counting(number: int) -> None:
        nonlocal done
        done = number
        show(number)

    with _bar(count(scope, filters).under(filters), options) as show, _target(options["output"]) as write:
        for part in export(scope, filters, options["format"], vectors=options["vectors"], progress=counting):
            write(part)
    if options["output"] == "-":
        command.complain(f"{counted(done, 'memory', 'memories')} of {scope.instance.slug}.")
    elif options["json"]:
        command.print_json({"exported": done, "file": options["output"]})
    else:
        command.stdout.write(f"Wrote {counted(done, 'memory', 'memories')} to {options['output']}")


def import_from_file(command: ConsoleCommand, scope: Scope, options: dict[str, Any]) -> None:
    command.written_as = {"file": "FILE"}
    format = format_named(options["format"])
    with _source(options["file"]) as file:
        size = file.seek(0, 2)
        with _bar(size, options) as show:
            report = import_file(
                scope,
                file,
                format,
                name=options["file"],
                dry_run=options["dry_run"],
                progress=lambda report, position: show(position),
            )
    if options["json"]:
        command.print_json({"import": {"dryRun": options["dry_run"], **report_json(report)}})
    else:
        _print_report(command, report, dry_run=options["dry_run"])
    if report.invalid:
        sys.exit(FAILED)


def _print_report(command: ConsoleCommand, report: Report, *, dry_run: bool) -> None:
    for problem in report.problems:
        reasons = "; ".join(f"{field}: {why}" for field, whys in problem["errors"].items() for why in whys)
        command.complain(f"Line {problem['line']}: {reasons}")
    command.stdout.write("\n".join(_report_lines(report, dry_run)))


def _report_lines(report: Report, dry_run: bool) -> Iterator[str]:
    """A line for each count that is not zero."""
    created = counted(report.created, "memory", "memories")
    yield f"{created} {'would be ' if dry_run else ''}created, read as {report.format}."
    if report.existing:
        yield f"{counted(report.existing, 'row')} there already."
    if report.left_out:
        yield f"{counted(report.left_out, 'row')} left out: expired, or switched off where they come from."
    if report.invalid:
        yield f"{counted(report.invalid, 'row')} with problems, not {'to be ' if dry_run else ''}imported."
    if report.redacted:
        yield f"Credentials in {counted(report.redacted, 'row')} replaced."
    if report.dropped_links:
        yield f"{counted(report.dropped_links, 'link')} to conversations or messages that are not here dropped."


@contextmanager
def _target(name: str) -> Iterator[Callable[[str], Any]]:
    if name == "-":
        yield sys.stdout.write
        return
    try:
        with Path(name).open("w", encoding="utf-8", newline="") as file:
            yield file.write
    except OSError as error:
        raise Problem(f"{name} cannot be written: {error.strerror}.") from None


@contextmanager
def _source(name: str) -> Iterator[IO[bytes]]:
    """A file or a pipe. A pipe is spooled to disk first, because it may have to be read twice."""
    if name == "-":
        with _spooled(standard_input()) as spool:
            yield spool
        return
    try:
        with Path(name).open("rb") as file, nullcontext(file) if file.seekable() else _spooled(file) as whole:
            yield whole
    except OSError as error:
        raise Problem(f"{name} cannot be read: {error.strerror}.") from None


@contextmanager
def _spooled(stream: IO[bytes]) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as spool:
        shutil.copyfileobj(stream, spool, PART)
        yield spool


@contextmanager
def _bar(total: int, options: dict[str, Any]) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr, if that is a terminal."""
    if sys.stderr.isatty() and total:
        with progress_bar(total, no_color=options["no_color"]) as show:
            yield show
    else:
        yield lambda done: None
