from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from memoryconsole import processes, web


class Command(BaseCommand):
    help = "Serves pages and API until it is told to stop. `up` starts one by itself."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=settings.HOST)
        parser.add_argument("--port", type=web.port_number, default=settings.PORT)
        parser.add_argument("--parent", type=int, help="stop when this process is gone")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["parent"]:
            processes.end_with_parent(options["parent"])
        web.serve(options["host"], options["port"])
