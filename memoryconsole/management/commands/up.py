from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memoryconsole import starting, web


class Command(BaseCommand):
    help = "Starts everything: database, migrations, first-start set-up, web server and worker, until Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=settings.HOST)
        parser.add_argument("--port", type=web.port_number, default=settings.PORT)
        parser.add_argument("--no-demo", action="store_true", help="start empty, without the demo instances")

    def handle(self, *args: Any, host: str, port: int, no_demo: bool, **options: Any) -> None:
        if problem := web.address_problem(host, port):
            raise CommandError(
                f"Cannot listen on {host} port {port}: {problem}. "
                "Stop what is using it, or choose another with --port or PORT."
            )
        starting.up(host, port, demo=not no_demo, say=self.say)

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
