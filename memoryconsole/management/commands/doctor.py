import sys
from dataclasses import asdict
from textwrap import indent
from typing import Any

from django.core.management.base import CommandParser

from memoryconsole import doctor
from memoryconsole.commands import ConsoleCommand
from memoryconsole.health import Finding

SIGNS = {"ok": "✓", "info": "·", "warning": "!", "broken": "✗"}


class Command(ConsoleCommand):
    help = "Checks the set-up and says what to do about each finding. Exits with 1 when something is broken."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = []
        for finding in doctor.examine():
            findings.append(finding)
            if not options["json"]:
                self.tell(finding)
        healthy = all(finding.level != "broken" for finding in findings)
        if options["json"]:
            self.print_json({"healthy": healthy, "findings": [asdict(finding) for finding in findings]})
        if not healthy:
            sys.exit(1)

    def tell(self, finding: Finding) -> None:
        self.stdout.write(f"{SIGNS[finding.level]} {finding.check}: {finding.message}")
        if finding.advice:
            self.stdout.write(indent(finding.advice, "    "))
