from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from memoryconsole import web


class Command(BaseCommand):
    help = "Serves pages and API until it is told to stop. `up` starts one by itself."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        web.add_arguments(parser)

    def handle(self, *args: Any, host: str, port: int, parent: int | None, **options: Any) -> None:
        web.serve(host, port, parent)
