import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from memories.forgetting import Counts, Forgotten, Owner, forget, preview
from memoryconsole.commands import ConsoleCommand, add_json_option, is_interactive, open_from_shell
from memoryconsole.counting import counted
from memoryconsole.errors import Problem
from memoryconsole.inputs import read

# Singular and plural, where they are not the name without and with an s.
NOUNS = {"memories": ("memory", "memories"), "golden": ("golden query", "golden queries")}


class Command(ConsoleCommand):
    help = "Removes everything of one owner in one instance, for good, and says what went."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--instance", metavar="SLUG", required=True, help="in which instance")
        parser.add_argument("--owner", metavar="ID", required=True, help="whose: the id the engine sends for them")
        parser.add_argument("--yes", action="store_true", help="do not ask first")
        add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        scope = open_from_shell(options["instance"])
        owner = read(Owner, {"owner": options["owner"]}).owner
        counts = preview(scope, owner)
        if not counts.is_nothing and not options["yes"]:
            self._ask(owner, counts)
        done = forget(scope, owner)
        if options["json"]:
            self.print_json({"forgotten": asdict(done.counts), "left": done.left, "mentioned": done.mentioned})
        else:
            self.stdout.write("\n".join(_lines(done)))
        if done.left:
            self.fail(f"Not everything went. Left of this owner: {counted(done.left, 'row')}. Run it again.")

    def _ask(self, owner: str, counts: Counts) -> None:
        if not is_interactive():
            raise Problem("There is nobody to ask: add --yes to forget.")
        self.complain(*(f"  {line}" for line in _counted(asdict(counts))))
        self.stderr.write(f"This cannot be undone. Type {owner} to forget all of it: ", style_func=str, ending="")
        self.stderr.flush()
        if sys.stdin.readline().strip() != owner:
            self.fail("Nothing was forgotten.")


def _lines(done: Forgotten) -> list[str]:
    if done.counts.is_nothing:
        lines = ["There was nothing to forget."]
    else:
        lines = ["Forgotten:", *(f"  {line}" for line in _counted(asdict(done.counts)))]
    lines.append(f"Left of this owner, in every table of the instance: {done.left}.")
    if done.mentioned:
        lines.append(f"Others still mention the id: {', '.join(_counted(done.mentioned))}.")
    return lines


def _counted(counts: dict[str, int]) -> list[str]:
    return [counted(n, *NOUNS.get(kind, (kind.removesuffix("s"), kind))) for kind, n in counts.items() if n]
