"""The result of an import: counts, and problems by line. A job keeps it, so it never contains the text of a memory."""

import re
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

from pydantic.alias_generators import to_camel

from memoryconsole.inputs import snake_name
from memoryconsole.scrub import scrub

PROBLEMS_SHOWN = 100
# Of one row: a memory may have thousands of versions, each of them wrong.
FIELDS_SHOWN = 10
# Greedy, because a quoted text may contain quotation marks itself.
QUOTED = re.compile(r"“.*”", re.DOTALL)
# In problems of these fields, the beginning of a quoted value is shown: it is usually a word from a short list.
ENUMERATED = frozenset({"category", "role", "visibility", "status", "source"})
LONGEST_WORD = 32


@dataclass(slots=True)
class Report:
    """The result of importing a file as `format`. `problems` has only the first ones, each with its first fields;
    `invalid` counts all."""

    format: str = ""
    rows: int = 0
    created: int = 0
    existing: int = 0
    left_out: int = 0
    invalid: int = 0
    redacted: int = 0
    dropped_links: int = 0
    problems: list[dict[str, Any]] = field(default_factory=list)

    def add_problem(self, line: int, reasons: dict[str, list[str]]) -> None:
        self.invalid += 1
        if len(self.problems) < PROBLEMS_SHOWN:
            self.problems.append({"line": line, "errors": dict(islice(reasons.items(), FIELDS_SHOWN))})

    def add(self, other: "Report") -> None:
        for name, value in asdict(other).items():
            if name not in ("format", "problems"):
                setattr(self, name, getattr(self, name) + value)
        self.problems = (self.problems + other.problems)[:PROBLEMS_SHOWN]


def report_json(report: Report) -> dict[str, Any]:
    """The report without what it quotes from the file, except short names of fields and words of enumerated ones."""
    fields = asdict(report)
    problems = [{"line": each["line"], "errors": _unquoted(each["errors"])} for each in fields.pop("problems")]
    return {**{to_camel(name): value for name, value in fields.items()}, "problems": problems}


def report_from(stored: dict[str, Any]) -> Report:
    return Report(**{snake_name(name): value for name, value in stored.items()})


def _unquoted(errors: dict[str, list[str]]) -> dict[str, list[str]]:
    return {
        _shortened(field): [QUOTED.sub(_quoted if _is_enumerated(field) else "“…”", reason) for reason in reasons]
        for field, reasons in errors.items()
    }


def _is_enumerated(field: str) -> bool:
    """Also for a field of an earlier version: `versions.0.category`."""
    return field.rpartition(".")[2] in ENUMERATED


def _quoted(quoted: re.Match[str]) -> str:
    return f"“{_shortened(quoted[0][1:-1])}”"


def _shortened(word: str) -> str:
    """Scrubbed and cut, in case a text was in the wrong column, or is the name of one."""
    word = scrub(word)[0]
    return word if len(word) <= LONGEST_WORD else f"{word[:LONGEST_WORD].rstrip()}…"
