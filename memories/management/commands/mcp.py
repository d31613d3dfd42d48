from typing import Any

from django.core.management.base import CommandParser

from memoryconsole.commands import ConsoleCommand, open_from_shell


class Command(ConsoleCommand):
    help = "Serves the memory of one instance to an agent: MCP over standard input and output, until input ends."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--instance", metavar="SLUG", required=True, help="whose memory")

    def handle(self, *args: Any, instance: str, **options: Any) -> None:
        open_from_shell(instance)
        # Imported after the instance was found, because the import takes a second.
        from memories.mcp import stdio

        stdio.serve(instance)
