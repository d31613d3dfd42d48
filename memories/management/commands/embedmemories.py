from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from django.core.management.base import CommandParser
from pydantic import Field

from accounts.access import Scope
from memories.asking import Unavailable
from memories.cli.printing import progress_bar
from memories.embedding.backfill import MOST, NO_MODEL, embed_pending, missing, refused, try_failed_again
from memories.embedding.embedder import model_of
from memoryconsole.commands import ConsoleCommand, add_json_option, open_from_shell
from memoryconsole.counting import counted
from memoryconsole.errors import Problem
from memoryconsole.inputs import Input, Number, read

WAYS_OUT = (
    "Set OPENAI_API_KEY, give the instance a key of its own, or choose the offline embedder in its settings, "
    "which needs none."
)

REFUSED = "The pages of their memories say why; memory list --embedding failed names them."


class Backfill(Input):
    limit: Annotated[Number, Field(ge=1, le=MOST)] | None = None


class Stopped(Problem):
    status = 503


class Command(ConsoleCommand):
    help = "Makes the vectors that memories of one instance are missing, now and not by the worker."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--instance", metavar="SLUG", required=True, help="whose memories")
        parser.add_argument("--limit", metavar="N", help="at most so many; all of them unless given")
        add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        wanted = read(Backfill, {"limit": options["limit"]})
        scope = open_from_shell(options["instance"])
        model = model_of(scope.instance)
        if not model:
            self.complain(NO_MODEL)
            self.fail(WAYS_OUT)
        try_failed_again(scope)
        tried = self._embed(scope, wanted.limit, options)
        left, not_taken = missing(scope), refused(scope)
        done = max(0, tried - not_taken)
        if options["json"]:
            self.print_json({"embedded": done, "missing": left, "refused": not_taken, "model": model})
        elif tried or left:
            rest = f" {left:,} still have none." if left else ""
            self.stdout.write(f"Made {counted(done, 'vector')} with {model}.{rest}")
        else:
            self.stdout.write(f"Every memory of {scope.instance.slug} has its vectors.")
        if not_taken:
            self.fail(f"Refused by the embeddings API: {counted(not_taken, 'vector')}. {REFUSED}")

    def _embed(self, scope: Scope, limit: int | None, options: dict[str, Any]) -> int:
        made = 0
        total = min(missing(scope), limit or MOST)
        with self._progress(total, options) as show:

            def report(done: int) -> None:
                nonlocal made
                made = done
                show(done)

            try:
                return embed_pending(scope, limit=limit, progress=report)
            except Unavailable as unavailable:
                raise Stopped(f"{unavailable.reason} {counted(made, 'vector')} made before that will stay.") from None

    @contextmanager
    def _progress(self, total: int, options: dict[str, Any]) -> Iterator[Callable[[int], None]]:
        """A progress bar on a terminal, or else lines; both on stderr."""
        if self.stdout.isatty() and total:
            with progress_bar(total, no_color=options["no_color"]) as show:
                yield show
        else:
            yield lambda done: self.complain(f"{done:,} of {max(total, done):,}")
